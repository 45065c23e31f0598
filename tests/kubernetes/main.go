// Command kubernetes runs etcd, the API server, the controller manager or kubectl, as its first argument says.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllers.NewControllerManagerCommand,
		"kubectl":                 kubectl.NewDefaultKubectlCommand,
	}
	if len(os.Args) > 1 {
		os.Args = os.Args[1:]
	}
	if os.Args[0] == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, found := commands[os.Args[0]]
	if !found {
		fmt.Fprintln(os.Stderr, "usage: kubernetes etcd|kube-apiserver|kube-controller-manager|kubectl ...")
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
