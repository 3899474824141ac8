// CoreDNS with the plugins of the real node's Corefile (hack/kubernetes/settings.py): its own main links fifty more, with
// the clients of clouds and of tracing services, and takes five times as long to build.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	coremain.Run()
}
