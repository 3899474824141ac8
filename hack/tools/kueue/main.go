// Kueue's controllers, scheduler and webhooks for Jobs and JobSets, started without what only a pod can have: its own main
// waits for certificates that are mounted at a fixed path, of metrics that nobody reads here, and links every kind of job.
package main

import (
	"flag"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	configapi "sigs.k8s.io/kueue/apis/config/v1beta1"
	kueuealpha "sigs.k8s.io/kueue/apis/kueue/v1alpha1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta1"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/config"
	"sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	_ "sigs.k8s.io/kueue/pkg/controller/jobs/job"
	_ "sigs.k8s.io/kueue/pkg/controller/jobs/jobset"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/util/kubeversion"
	"sigs.k8s.io/kueue/pkg/webhooks"
)

func main() {
	file := flag.String("config", "", "Kueue's own configuration")
	flag.Parse() // controller-runtime adds --kubeconfig
	ctrl.SetLogger(zap.New())

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, kueue.AddToScheme, kueuealpha.AddToScheme, configapi.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	utilruntime.Must(jobframework.ForEachIntegration(func(_ string, one jobframework.IntegrationCallbacks) error {
		if one.AddToScheme == nil {
			return nil
		}
		return one.AddToScheme(scheme)
	}))
	options, settings, err := config.Load(scheme, *file)
	utilruntime.Must(err)
	options.Metrics = metricsserver.Options{BindAddress: "0"}

	client := ctrl.GetConfigOrDie()
	client.QPS, client.Burst = *settings.ClientConnection.QPS, int(*settings.ClientConnection.Burst)
	manager, err := ctrl.NewManager(client, options)
	utilruntime.Must(err)
	utilruntime.Must(manager.AddReadyzCheck("readyz", manager.GetWebhookServer().StartedChecker()))
	utilruntime.Must(manager.AddHealthzCheck("healthz", healthz.Ping))
	start(manager, &settings)
}

// start serves until a signal comes.
func start(manager ctrl.Manager, settings *configapi.Configuration) {
	ctx := ctrl.SetupSignalHandler()
	cache := schdcache.New(manager.GetClient())
	queues := qcache.NewManager(manager.GetClient(), cache)
	discovered, err := discovery.NewDiscoveryClientForConfig(manager.GetConfig())
	utilruntime.Must(err)
	version := kubeversion.NewServerVersionFetcher(discovered)
	utilruntime.Must(version.FetchServerVersion())
	given := []jobframework.Option{
		jobframework.WithManageJobsWithoutQueueName(settings.ManageJobsWithoutQueueName),
		jobframework.WithKubeServerVersion(version),
		jobframework.WithEnabledFrameworks(settings.Integrations.Frameworks),
		jobframework.WithManagerName(constants.KueueName),
		jobframework.WithCache(cache),
		jobframework.WithQueues(queues),
	}

	utilruntime.Must(indexer.Setup(ctx, manager.GetFieldIndexer()))
	utilruntime.Must(jobframework.SetupIndexes(ctx, manager.GetFieldIndexer(), given...))
	_, err = core.SetupControllers(manager, queues, cache, settings)
	utilruntime.Must(err)
	_, err = webhooks.Setup(manager, configapi.MultiKueueDispatcherModeAllAtOnce)
	utilruntime.Must(err)
	utilruntime.Must(jobframework.SetupControllers(ctx, manager, ctrl.Log, given...))
	recorder := manager.GetEventRecorderFor(constants.AdmissionName)
	utilruntime.Must(manager.Add(scheduler.New(queues, cache, manager.GetClient(), recorder)))

	go queues.CleanUpOnContext(ctx)
	go cache.CleanUpOnContext(ctx)
	utilruntime.Must(manager.Start(ctx))
}
