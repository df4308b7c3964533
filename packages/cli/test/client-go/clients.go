package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

const (
	writers    = 4
	increments = 10
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// contend lets several writers count in one object: each conflict is tried again with what is there.
func contend(ctx context.Context, client *coreclient.CoreV1Client) {
	maps := client.ConfigMaps(namespace)
	_, err := maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "counter"}, Data: map[string]string{"count": ""},
	}, metav1.CreateOptions{})
	must("create a counter", err)
	backoff := retry.DefaultRetry
	backoff.Steps = 100
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range increments {
				must("count", retry.RetryOnConflict(backoff, func() error {
					object, err := maps.Get(ctx, "counter", metav1.GetOptions{})
					if err != nil {
						return err
					}
					object.Data["count"] += "x"
					_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
					return err
				}))
			}
		})
	}
	group.Wait()
	object, err := maps.Get(ctx, "counter", metav1.GetOptions{})
	must("get the counter", err)
	if count := len(object.Data["count"]); count != writers*increments {
		fail("%d writers counted %d, not %d", writers, count, writers*increments)
	}
	stale := object.DeepCopy()
	stale.ResourceVersion = "1"
	if _, err := maps.Update(ctx, stale, metav1.UpdateOptions{}); !errors.IsConflict(err) {
		fail("an old revision is no conflict: %v", err)
	}
}

// stream reads a list as the beginning of a watch, by hand.
func stream(ctx context.Context, client *coreclient.CoreV1Client) {
	maps := client.ConfigMaps(namespace)
	wants := true
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "parity=odd"})
	must("list", err)
	events, err := maps.Watch(ctx, metav1.ListOptions{
		LabelSelector:        "parity=odd",
		SendInitialEvents:    &wants,
		AllowWatchBookmarks:  true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	must("watch with initial events", err)
	defer events.Stop()
	held := map[string]bool{}
	for event := range events.ResultChan() {
		object := event.Object.(*corev1.ConfigMap)
		if event.Type == watch.Added {
			held[object.Name] = true
			continue
		}
		if event.Type != watch.Bookmark || object.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
			fail("%s of %s comes before the end of the initial events", event.Type, object.Name)
		}
		break
	}
	if len(held) != len(list.Items) {
		fail("%d objects were streamed, %d listed", len(held), len(list.Items))
	}
	_, err = maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "late", Labels: map[string]string{"parity": "odd"}},
	}, metav1.CreateOptions{})
	must("create", err)
	event := <-events.ResultChan()
	if name := event.Object.(*corev1.ConfigMap).Name; event.Type != watch.Added || name != "late" {
		fail("after the initial events comes %s of %s", event.Type, name)
	}
}

// page lists in small pages, as kubectl and controllers of old do.
func page(ctx context.Context, client *coreclient.CoreV1Client) {
	lists := 0
	one := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		lists++
		return client.ConfigMaps(namespace).List(ctx, options)
	})
	one.PageSize = 7
	found := 0
	err := one.EachListItem(ctx, metav1.ListOptions{}, func(runtime.Object) error { found++; return nil })
	must("pages", err)
	if whole, err := client.ConfigMaps(namespace).List(ctx, metav1.ListOptions{}); err != nil || found != len(whole.Items) {
		fail("%d objects in %d pages, %d in one list (%v)", found, lists, len(whole.Items), err)
	}
	if lists < 4 {
		fail("%d objects came in %d pages", found, lists)
	}
}

// apply owns fields with typed configurations, and takes over from what it had.
func apply(ctx context.Context, client *coreclient.CoreV1Client) {
	maps := client.ConfigMaps(namespace)
	wanted := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"a": "1", "b": "2"})
	_, err := maps.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "one"})
	must("apply", err)
	other := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"a": "9"})
	if _, err := maps.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "two"}); !errors.IsConflict(err) {
		fail("a field of another manager is no conflict: %v", err)
	}
	_, err = maps.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "two", Force: true})
	must("apply by force", err)
	object, err := maps.Get(ctx, "applied", metav1.GetOptions{})
	must("get", err)
	own, err := applycorev1.ExtractConfigMap(object, "one")
	must("extract", err)
	if len(own.Data) != 1 || own.Data["b"] != "2" {
		fail("the first manager owns %v", own.Data)
	}
	delete(own.Data, "b")
	object, err = maps.Apply(ctx, own.WithData(map[string]string{"c": "3"}), metav1.ApplyOptions{FieldManager: "one"})
	must("apply again", err)
	if fmt.Sprint(object.Data) != "map[a:9 c:3]" {
		fail("after all applications there is %v", object.Data)
	}
}

// extend defines a kind, finds it by cached discovery and uses it without knowing its type.
func extend(ctx context.Context, config *rest.Config) {
	client, err := dynamic.NewForConfig(config)
	must("a dynamic client", err)
	cached := memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(config))
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	if _, err := mapper.RESTMapping(widgets.GroupVersion().WithKind("Widget").GroupKind()); !meta.IsNoMatchError(err) {
		fail("a kind is found before it is defined: %v", err)
	}
	definitions := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	_, err = client.Resource(definitions).Create(ctx, definition(), metav1.CreateOptions{})
	must("define a kind", err)
	waitFor("the kind to be discovered", func() string {
		mapper.Reset()
		_, err := mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "v1")
		return text(err)
	})
	expander := restmapper.NewShortcutExpander(mapper, cached, nil)
	for _, short := range []string{"wd", "widget", "widgets"} {
		found, err := expander.ResourceFor(schema.GroupVersionResource{Resource: short})
		must(short, err)
		if found != widgets {
			fail("%s means %s", short, found)
		}
	}
	if _, err := cached.ServerPreferredResources(); err != nil || !cached.Fresh() {
		fail("preferred resources: %v", err)
	}
	use(ctx, client.Resource(widgets).Namespace(namespace), client)
	resize(ctx, config, mapper, cached)
}

func definition() *unstructured.Unstructured {
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com",
			"scope": "Namespaced",
			"names": map[string]any{
				"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": []any{"wd"},
			},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": open, "status": open},
				}},
				"subresources": map[string]any{
					"status": map[string]any{},
					"scale":  map[string]any{"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
				},
			}},
		},
	}}
}

func widget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"name": name, "labels": map[string]any{"size": fmt.Sprint(size)}},
		"spec":       map[string]any{"size": size},
	}}
}

func use(ctx context.Context, client dynamic.ResourceInterface, all dynamic.Interface) {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(
		all, 0, namespace, func(o *metav1.ListOptions) { o.LabelSelector = "size=2" },
	)
	lister := factory.ForResource(widgets).Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for i, name := range []string{"a", "b", "c"} {
		_, err := client.Create(ctx, widget(name, int64(i)+1), metav1.CreateOptions{})
		must("create a widget", err)
	}
	status := widget("b", 2)
	status.Object["status"] = map[string]any{"size": int64(2)}
	_, err := client.ApplyStatus(ctx, "b", status, metav1.ApplyOptions{FieldManager: "status"})
	must("apply a status", err)
	applied, err := client.Apply(ctx, "d", widget("d", 2), metav1.ApplyOptions{FieldManager: "spec"})
	must("apply a widget", err)
	if applied.GetGeneration() != 1 {
		fail("a new widget has generation %d", applied.GetGeneration())
	}
	change := []byte(`{"metadata":{"labels":{"size":"2"}}}`)
	_, err = client.Patch(ctx, "c", types.MergePatchType, change, metav1.PatchOptions{})
	must("patch a widget", err)
	waitFor("the informer of widgets to hold b, c and d", func() string {
		found, err := lister.List(labels.Everything())
		must("the lister", err)
		names := []string{}
		for _, one := range found {
			names = append(names, one.(*unstructured.Unstructured).GetName())
		}
		if len(names) == 3 {
			return ""
		}
		return strings.Join(names, " ")
	})
	err = client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "size=2"})
	must("delete a collection", err)
	left, err := client.List(ctx, metav1.ListOptions{})
	must("list widgets", err)
	if len(left.Items) != 1 || left.Items[0].GetName() != "a" {
		fail("%d widgets are left", len(left.Items))
	}
}

// resize scales a kind through the client that autoscalers use.
func resize(
	ctx context.Context, config *rest.Config, mapper meta.RESTMapper, cached discovery.ServerResourcesInterface,
) {
	client, err := scale.NewForConfig(
		config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(cached.(discovery.DiscoveryInterface)),
	)
	must("a client of scales", err)
	scales := client.Scales(namespace)
	size, err := scales.Get(ctx, widgets.GroupResource(), "a", metav1.GetOptions{})
	must("get a scale", err)
	size.Spec.Replicas = 7
	size, err = scales.Update(ctx, widgets.GroupResource(), size, metav1.UpdateOptions{})
	must("update a scale", err)
	if size.Spec.Replicas != 7 {
		fail("a widget was scaled to %d", size.Spec.Replicas)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
