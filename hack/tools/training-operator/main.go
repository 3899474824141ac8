// The PyTorchJob controller of Kubeflow's training operator, started without what only a pod can have: the operator's own
// main waits for certificates that are mounted at a fixed path. They serve webhooks that validate; the controller needs none.
package main

import (
	"flag"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/pytorch"
)

func main() {
	health := flag.String("health-probe-bind-address", "127.0.0.1:8081", "where /readyz is served")
	threads := flag.Int("controller-threads", 4, "jobs reconciled at once")
	qps := flag.Float64("kube-api-qps", 200, "requests to the API server a second")
	flag.Parse() // controller-runtime adds --kubeconfig

	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kubeflowv1.AddToScheme(scheme))

	client := ctrl.GetConfigOrDie()
	client.QPS, client.Burst = float32(*qps), int(*qps*2)
	manager, err := ctrl.NewManager(client, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: *health,
	})
	utilruntime.Must(err)
	utilruntime.Must(manager.AddReadyzCheck("ping", healthz.Ping))
	utilruntime.Must(pytorch.NewReconciler(manager, common.GenNonGangSchedulerSetupFunc()).SetupWithManager(manager, *threads))
	utilruntime.Must(manager.Start(ctrl.SetupSignalHandler()))
}
