// Stands for KEDA's client of Azure Event Grid, whose libraries take long to build: no handler is made.
package eventemitter

import "errors"

func NewAzureEventGridTopicHandler(...any) (EventDataHandler, error) {
	return nil, errors.New("this build of KEDA has no client of Azure Event Grid")
}
