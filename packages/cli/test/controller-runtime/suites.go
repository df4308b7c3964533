// Package suites names the modules whose own tests envtest-suites.peer.test.ts runs.
package suites

import (
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"
)
