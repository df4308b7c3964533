package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	flowclient "k8s.io/client-go/kubernetes/typed/flowcontrol/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	hot         = "storm"
	ballast     = "ballast"
	counters    = 32
	watchers    = 16
	informers   = 4
	ballasts    = 100
	recoveryMax = 10 * time.Second
)

type storm struct {
	config *rest.Config
	// What each counter was written with last.
	written [counters]atomic.Int64
	refused atomic.Int64
	lost    atomic.Int64
}

type tally struct {
	next  http.RoundTripper
	storm *storm
}

func (t tally) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(request)
	if err == nil && answer.StatusCode == http.StatusTooManyRequests {
		t.storm.refused.Add(1)
	}
	return answer, err
}

// as is a client with connections and flows of its own, which no limit of its own holds back.
func (s *storm) as(user string, group string) *rest.Config {
	config := rest.CopyConfig(s.config)
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{
		UserName: user, Groups: []string{group, "system:authenticated"},
	}
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return tally{next, s} }
	return config
}

func (s *storm) core(user string) *coreclient.CoreV1Client {
	return coreclient.NewForConfigOrDie(s.as(user, hot))
}

// overload asks for more than can be done: controllers in hot loops, lists of everything, watches
// that come and go, each `crowd` times. Some must be refused, a node's lease be renewed all the
// while, everybody be served soon after, and no watch have missed a write without being told.
func overload(config *rest.Config, duration time.Duration, crowd int) {
	s := &storm{config: config}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.prepare(ctx)
	follow := []*watcher{}
	for i := range watchers {
		follow = append(follow, s.follow(ctx, fmt.Sprint("watcher-", i)))
	}
	held := []cache.SharedInformer{}
	for i := range informers {
		held = append(held, s.inform(ctx, fmt.Sprint("informer-", i)))
	}
	stormy, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	var group sync.WaitGroup
	for i := range counters {
		group.Go(func() { s.count(stormy, i) })
	}
	for i := range 16 * crowd {
		group.Go(func() { s.listAll(stormy, fmt.Sprint("lister-", i%2)) })
		group.Go(func() { s.reconnect(stormy, fmt.Sprint("reconnector-", i%2)) })
	}
	renewals := s.renew(stormy)
	group.Wait()
	calm := time.Now()
	s.settle(ctx)
	recovery := time.Since(calm)
	for _, one := range follow {
		waitFor("a watch to tell the last write", one.behind)
	}
	for _, one := range held {
		waitFor("an informer to hold the last write", func() string { return s.stale(one) })
	}
	slices.Sort(renewals)
	p99 := renewals[int(math.Ceil(float64(len(renewals))*0.99))-1]
	fmt.Printf(
		"%d refused, %d renewals p99 %s, served again after %s\n",
		s.refused.Load(), len(renewals), p99, recovery,
	)
	if s.lost.Load() > 0 {
		fail("%d writes were told to nobody", s.lost.Load())
	}
	if s.refused.Load() == 0 {
		fail("nobody was refused")
	}
	if recovery > recoveryMax {
		fail("it took %s until all were served again", recovery)
	}
}

func (s *storm) prepare(ctx context.Context) {
	_, err := rbacclient.NewForConfigOrDie(s.config).ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: hot},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: hot}},
	}, metav1.CreateOptions{})
	must("bind a role", err)
	s.narrow(ctx)
	client := coreclient.NewForConfigOrDie(s.as("admin", "system:masters"))
	for namespace, names := range map[string]int{hot: counters, ballast: ballasts} {
		_, err = client.Namespaces().Create(ctx, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: namespace},
		}, metav1.CreateOptions{})
		must("create a namespace", err)
		for i := range names {
			data := map[string]string{"count": "0"}
			if namespace == ballast {
				data["blob"] = strings.Repeat("x", 20_000)
			}
			_, err = client.ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)}, Data: data,
			}, metav1.CreateOptions{})
			must("create", err)
		}
	}
}

// narrow gives the storm few seats and short queues, as one gives them to programs that are known
// to be noisy.
func (s *storm) narrow(ctx context.Context) {
	client := flowclient.NewForConfigOrDie(s.config)
	shares, queues := int32(1), flowcontrolv1.QueuingConfiguration{Queues: 4, HandSize: 1, QueueLengthLimit: 2}
	_, err := client.PriorityLevelConfigurations().Create(ctx, &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: hot},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: &shares,
				LimitResponse:            flowcontrolv1.LimitResponse{Type: "Queue", Queuing: &queues},
			},
		},
	}, metav1.CreateOptions{})
	must("create a level", err)
	_, err = client.FlowSchemas().Create(ctx, &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: hot},
		Spec: flowcontrolv1.FlowSchemaSpec{
			MatchingPrecedence:         500,
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: hot},
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: "ByUser"},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{Kind: "Group", Group: &flowcontrolv1.GroupSubject{Name: hot}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"*"}, ClusterScope: true,
				}},
			}},
		},
	}, metav1.CreateOptions{})
	must("create a flow schema", err)
}

// count is a controller without a queue, which writes again as soon as it was answered.
func (s *storm) count(ctx context.Context, i int) {
	client := s.core(fmt.Sprint("controller-", i%4)).ConfigMaps(hot)
	for ctx.Err() == nil {
		object, err := client.Get(ctx, fmt.Sprint("c", i), metav1.GetOptions{})
		if err != nil {
			continue
		}
		count := counted(object) + 1
		object.Data["count"] = fmt.Sprint(count)
		// A write that is under way when the storm ends must still be known.
		if _, err := client.Update(context.WithoutCancel(ctx), object, metav1.UpdateOptions{}); err == nil {
			s.written[i].Store(count)
		}
	}
}

func counted(object *corev1.ConfigMap) (count int64) {
	_, err := fmt.Sscan(object.Data["count"], &count)
	must("a count", err)
	return count
}

func (s *storm) listAll(ctx context.Context, user string) {
	client := s.core(user)
	for ctx.Err() == nil {
		_, _ = client.ConfigMaps("").List(ctx, metav1.ListOptions{})
	}
}

func (s *storm) reconnect(ctx context.Context, user string) {
	client := s.core(user)
	for ctx.Err() == nil {
		events, err := client.ConfigMaps(ballast).Watch(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err == nil {
			<-events.ResultChan()
			events.Stop()
		}
	}
}

// renew is a kubelet, and says how long each renewal took.
func (s *storm) renew(ctx context.Context) (taken []time.Duration) {
	config := s.as("system:node:storm", "system:nodes")
	client := coordinationclient.NewForConfigOrDie(config).Leases("kube-node-lease")
	until := context.WithoutCancel(ctx)
	lease, err := client.Create(until, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: hot}}, metav1.CreateOptions{})
	must("create a lease", err)
	for ctx.Err() == nil {
		began := time.Now()
		now := metav1.NewMicroTime(began)
		lease.Spec.RenewTime = &now
		lease, err = client.Update(until, lease, metav1.UpdateOptions{})
		must("renew a lease", err)
		taken = append(taken, time.Since(began))
		time.Sleep(50 * time.Millisecond)
	}
	return taken
}

// settle waits until one of those who were too many is served as ever.
func (s *storm) settle(ctx context.Context) {
	client := s.core("controller-0").ConfigMaps(hot)
	for quick := 0; quick < 20; quick++ {
		began := time.Now()
		if _, err := client.Get(ctx, "c0", metav1.GetOptions{}); err != nil || time.Since(began) > time.Second {
			quick = 0
		}
	}
}

func (s *storm) inform(ctx context.Context, user string) cache.SharedInformer {
	client := s.core(user).RESTClient()
	lw := cache.NewListWatchFromClient(client, "configmaps", hot, fields.Everything())
	one := cache.NewSharedInformer(cache.ToListWatcherWithWatchListSemantics(lw, client), &corev1.ConfigMap{}, 0)
	go one.Run(ctx.Done())
	return one
}

func (s *storm) stale(one cache.SharedInformer) string {
	for i := range s.written {
		object, exists, err := one.GetStore().GetByKey(fmt.Sprintf("%s/c%d", hot, i))
		must("the store", err)
		if !exists || counted(object.(*corev1.ConfigMap)) < s.written[i].Load() {
			return fmt.Sprintf("c%d is old", i)
		}
	}
	return ""
}

// watcher reads a watch by hand, from where the one before ended: each counter goes up by one
// each time, except where a list had to be read anew.
type watcher struct {
	storm   *storm
	client  *coreclient.CoreV1Client
	version string
	seen    [counters]atomic.Int64
}

func (s *storm) follow(ctx context.Context, user string) *watcher {
	one := &watcher{storm: s, client: s.core(user)}
	must("list", one.list(ctx))
	go func() {
		for ctx.Err() == nil {
			if err := one.watch(ctx); errors.IsResourceExpired(err) || errors.IsGone(err) {
				_ = one.list(ctx)
			}
		}
	}()
	return one
}

func (w *watcher) list(ctx context.Context) error {
	list, err := w.client.ConfigMaps(hot).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	w.version = list.ResourceVersion
	for i := range list.Items {
		w.see(&list.Items[i])
	}
	return nil
}

func (w *watcher) watch(ctx context.Context) error {
	events, err := w.client.ConfigMaps(hot).Watch(ctx, metav1.ListOptions{ResourceVersion: w.version})
	if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return errors.FromObject(event.Object)
		}
		object, isMap := event.Object.(*corev1.ConfigMap)
		if !isMap || event.Type != watch.Modified {
			continue
		}
		w.version = object.ResourceVersion
		if before := w.see(object); counted(object) != before+1 {
			w.storm.lost.Add(1)
		}
	}
	return nil
}

func (w *watcher) see(object *corev1.ConfigMap) int64 {
	for i := range w.seen {
		if object.Name == fmt.Sprint("c", i) {
			return w.seen[i].Swap(counted(object))
		}
	}
	return -1
}

func (w *watcher) behind() string {
	for i := range w.seen {
		if seen, written := w.seen[i].Load(), w.storm.written[i].Load(); seen < written {
			return fmt.Sprintf("%d of c%d seen, %d written", seen, i, written)
		}
	}
	return ""
}
