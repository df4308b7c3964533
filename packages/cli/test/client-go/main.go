// Command clientgo uses an API server as programs with client-go do: informers of several kinds
// while objects come and go, writers that contend, lists that are streamed and paged, typed
// applications, kinds found by cached discovery and used without types, and an election of a
// leader. It says what does not hold and exits 1.
//
//	clientgo KUBECONFIG expectWatchList|expectList
//	clientgo KUBECONFIG overload DURATION CROWD
//	clientgo KUBECONFIG largeList MEDIATYPE
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	namespace = "default"
	objects   = 40
	patience  = 20 * time.Second
	firstHalf = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	lastHalf  = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
)

type follower struct {
	name     string
	options  func(*metav1.ListOptions)
	informer cache.SharedInformer
	added    atomic.Int64
	deleted  atomic.Int64
}

var watchLists atomic.Int64

type counting struct{ next http.RoundTripper }

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.Contains(request.URL.RawQuery, "sendInitialEvents=true") {
		watchLists.Add(1)
	}
	return c.next.RoundTrip(request)
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must("the kubeconfig", err)
	if os.Args[2] == "largeList" {
		listLarge(config, os.Args[3])
		return
	}
	if os.Args[2] == "overload" {
		duration, err := time.ParseDuration(os.Args[3])
		must("the duration", err)
		crowd, err := strconv.Atoi(os.Args[4])
		must("the crowd", err)
		overload(config, duration, crowd)
		fmt.Println("ok")
		return
	}
	config.QPS = 1000
	config.Burst = 1000
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return counting{next} }
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	json := coreclient.NewForConfigOrDie(config)
	binary := rest.CopyConfig(config)
	binary.ContentType = "application/vnd.kubernetes.protobuf"
	binary.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	protobuf := coreclient.NewForConfigOrDie(binary)
	followers := []*follower{
		follow(ctx, json, "json", func(*metav1.ListOptions) {}),
		follow(ctx, protobuf, "protobuf", func(*metav1.ListOptions) {}),
		follow(ctx, protobuf, "label", func(o *metav1.ListOptions) { o.LabelSelector = "parity in (even)" }),
		follow(ctx, json, "field", func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", "cm-7").String()
		}),
		follow(ctx, json, "first half", func(o *metav1.ListOptions) { o.ShardSelector = firstHalf }),
		follow(ctx, protobuf, "last half", func(o *metav1.ListOptions) { o.ShardSelector = lastHalf }),
		followMetadata(ctx, config),
	}
	for _, one := range followers {
		waitFor(one.name+" to be synced", func() string {
			if one.informer.HasSynced() {
				return ""
			}
			return "not yet"
		})
	}
	churn(ctx, json)
	for _, one := range followers {
		waitFor(one.name+" to hold the list", func() string { return difference(ctx, json, one) })
	}
	whole, first, last := followers[0], followers[4], followers[5]
	if sum := first.added.Load() + last.added.Load(); sum != whole.added.Load() {
		fail("the halves were told of %d objects, the whole of %d", sum, whole.added.Load())
	}
	if wanted := os.Args[2] == "expectWatchList"; wanted != (watchLists.Load() > 0) {
		fail("%s, but %d requests asked for initial events", os.Args[2], watchLists.Load())
	}
	contend(ctx, protobuf)
	stream(ctx, protobuf)
	page(ctx, json)
	apply(ctx, json)
	extend(ctx, config)
	elect(ctx, config)
	fmt.Println("ok")
}

func follow(
	ctx context.Context, client *coreclient.CoreV1Client, name string, options func(*metav1.ListOptions),
) *follower {
	one := &follower{name: name, options: options}
	lw := cache.ToListWatcherWithWatchListSemantics(
		cache.NewFilteredListWatchFromClient(client.RESTClient(), "configmaps", namespace, options),
		client.RESTClient(),
	)
	one.informer = cache.NewSharedInformer(lw, &corev1.ConfigMap{}, 0)
	one.run(ctx)
	return one
}

// followMetadata keeps what the garbage collector keeps: metadata alone, in protobuf.
func followMetadata(ctx context.Context, config *rest.Config) *follower {
	client, err := metadata.NewForConfig(config)
	must("a client of metadata", err)
	maps := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
	one := &follower{name: "metadata", options: func(*metav1.ListOptions) {}}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return maps.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, options)
		},
	}
	one.informer = cache.NewSharedInformer(
		cache.ToListWatcherWithWatchListSemantics(lw, client), &metav1.PartialObjectMetadata{}, 0,
	)
	one.run(ctx)
	return one
}

func (one *follower) run(ctx context.Context) {
	_, err := one.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { one.added.Add(1) },
		DeleteFunc: func(any) { one.deleted.Add(1) },
	})
	must("a handler", err)
	go one.informer.Run(ctx.Done())
}

func churn(ctx context.Context, client *coreclient.CoreV1Client) {
	maps := client.ConfigMaps(namespace)
	for i := range objects {
		parity := []string{"even", "odd"}[i%2]
		_, err := maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name:   fmt.Sprintf("cm-%d", i),
				Labels: map[string]string{"parity": parity},
			},
			Data: map[string]string{"round": "0"},
		}, metav1.CreateOptions{})
		must("create", err)
	}
	for i := range objects {
		object, err := maps.Get(ctx, fmt.Sprintf("cm-%d", i), metav1.GetOptions{})
		must("get", err)
		object.Data["round"] = "1"
		if i%3 == 0 {
			object.Labels["parity"] = "none"
		}
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
		must("update", err)
		if i%5 == 0 {
			must("delete", maps.Delete(ctx, object.Name, metav1.DeleteOptions{}))
		}
	}
}

func difference(ctx context.Context, client *coreclient.CoreV1Client, one *follower) string {
	var list corev1.ConfigMapList
	options := metav1.ListOptions{}
	one.options(&options)
	err := client.RESTClient().Get().Namespace(namespace).Resource("configmaps").
		VersionedParams(&options, scheme.ParameterCodec).Do(ctx).Into(&list)
	must("list", err)
	held := one.informer.GetStore()
	if len(held.List()) != len(list.Items) {
		return fmt.Sprintf("%d objects held, %d listed", len(held.List()), len(list.Items))
	}
	for i := range list.Items {
		listed := &list.Items[i]
		found, exists, err := held.Get(listed)
		must("the store", err)
		if !exists {
			return listed.Name + " is missing"
		}
		own, err := meta.Accessor(found)
		must("metadata", err)
		if own.GetResourceVersion() != listed.ResourceVersion || own.GetUID() != listed.UID {
			return listed.Name + " is old"
		}
	}
	return ""
}

func elect(ctx context.Context, config *rest.Config) {
	leases := coordinationclient.NewForConfigOrDie(config)
	leads := make(chan string, 4)
	stop := map[string]context.CancelFunc{}
	for _, name := range []string{"a", "b"} {
		own, cancel := context.WithCancel(ctx)
		stop[name] = cancel
		go leaderelection.RunOrDie(own, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Name: "clientgo", Namespace: namespace},
				Client:     leases,
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			},
			LeaseDuration:   3 * time.Second,
			RenewDeadline:   2 * time.Second,
			RetryPeriod:     200 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- name },
				OnStoppedLeading: func() {},
			},
		})
	}
	first := next(leads, "a first leader")
	stop[first]()
	if second := next(leads, "a second leader"); second == first {
		fail("%s leads again after it has let go", first)
	}
}

func next(leads chan string, what string) string {
	select {
	case name := <-leads:
		return name
	case <-time.After(patience):
		fail("there is not %s after %s", what, patience)
		return ""
	}
}

func waitFor(what string, check func() string) {
	deadline := time.Now().Add(patience)
	for {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			fail("waited %s for %s: %s", patience, what, problem)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func must(what string, err error) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

func fail(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
	os.Exit(1)
}
