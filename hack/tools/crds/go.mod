// Nothing is built here: hack/tool takes the custom resource definitions out of these modules.
module scaletest/hack/tools/crds

go 1.26.0

require github.com/kedacore/keda/v2 v2.20.2

require github.com/prometheus-operator/prometheus-operator v0.85.0
