// The Kubernetes API server, which ends when its standard input closes.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"windlass.test/apiserver/parent"
)

func main() {
	parent.Follow()
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
