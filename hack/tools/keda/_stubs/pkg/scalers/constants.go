// What the scalers that stay take from those that are left out.
package scalers

const (
	externalMetricType = "External" // of azure_queue_scaler.go
	stringEnable       = "enable"   // of kafka_scaler.go
	stringDisable      = "disable"
)
