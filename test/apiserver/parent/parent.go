// Package parent ends a process together with the one that started it.
package parent

import (
	"io"
	"os"
)

// Follow ends this process as soon as its standard input closes. A test that is killed cannot clean up, but the kernel
// closes its end of the pipe, so no server outlives the test that started it. Nor does its throw-away directory, if the
// test named one.
func Follow() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		if dir := os.Getenv("WINDLASS_TEST_THROW_AWAY"); dir != "" {
			_ = os.RemoveAll(dir)
		}
		os.Exit(1)
	}()
}
