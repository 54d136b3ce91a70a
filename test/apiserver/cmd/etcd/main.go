// The etcd server, which ends when its standard input closes.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"

	"windlass.test/apiserver/parent"
)

func main() {
	parent.Follow()
	etcdmain.Main(os.Args)
}
