// A program with etcd's own client library that does what Cilium's kvstore package does with it:
// sessions with leases kept alive, locks and writes that hold only under them, lists in pages,
// watches that list again when they were compacted, heartbeats. It tells each answer in a line,
// without ids, so that two servers can be compared.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	client "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const patience = 30 * time.Second

type peer struct {
	ctx     context.Context
	client  *client.Client
	session *concurrency.Session
	locks   *concurrency.Session
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// must ends the program: what is tried here never fails on etcd.
func must(err error) {
	if err != nil {
		say("FAILED: %v", err)
		os.Exit(1)
	}
}

// told shows an error as a caller that compares with the library's own sees it.
func told(err error) string {
	known := map[string]error{
		"lease not found": rpctypes.ErrLeaseNotFound,
		"compacted":       rpctypes.ErrCompacted,
		"future revision": rpctypes.ErrFutureRev,
		"lock is held":    concurrency.ErrLocked,
		"deadline":        context.DeadlineExceeded,
	}
	for name, one := range known {
		if errors.Is(err, one) {
			return name
		}
	}
	if err == nil {
		return "ok"
	}
	return err.Error()
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	c, err := client.New(client.Config{
		Endpoints:            []string{os.Args[1]},
		DialKeepAliveTime:    15 * time.Second,
		DialKeepAliveTimeout: 25 * time.Second,
	})
	must(err)
	session, err := concurrency.NewSession(c, concurrency.WithTTL(900))
	must(err)
	locks, err := concurrency.NewSession(c, concurrency.WithTTL(25))
	must(err)
	p := &peer{ctx, c, session, locks}
	p.status()
	p.identities()
	p.underLock()
	p.lists()
	p.watches()
	p.rivals()
	p.expired()
	must(session.Close())
	must(locks.Close())
	left, err := c.Get(ctx, "", client.WithPrefix(), client.WithCountOnly())
	must(err)
	say("left after the sessions: %d", left.Count)
	must(c.Close())
}

// status: the version of each endpoint, and a lock as the test of a quorum.
func (p *peer) status() {
	for _, endpoint := range p.client.Endpoints() {
		status, err := p.client.Status(p.ctx, endpoint)
		must(err)
		parts := strings.Split(status.Version, ".")
		say("status: %d parts, leader %t, errors %v",
			len(parts), status.Leader == status.Header.MemberId, status.Errors)
	}
	mutex := concurrency.NewMutex(p.locks, "cilium/.initlock/7f")
	must(mutex.Lock(p.ctx))
	must(mutex.Unlock(p.ctx))
	ttl, err := p.client.TimeToLive(p.ctx, p.session.Lease(), client.WithAttachedKeys())
	must(err)
	say("session: granted %d, keys %d", ttl.GrantedTTL, len(ttl.Keys))
}

// identities: CreateOnly, CreateIfExists, UpdateIfDifferent, Get, DeletePrefix.
func (p *peer) identities() {
	const id, value = "cilium/state/identities/v1/id/1001", "cilium/state/identities/v1/value/k8s:a"
	create := func(key, content string) {
		put := client.OpPut(key, content, client.WithLease(p.session.Lease()))
		reply, err := p.client.Txn(p.ctx).If(client.Compare(client.Version(key), "=", 0)).Then(put).Commit()
		must(err)
		say("create %s: %t at %d, %d responses", key, reply.Succeeded, reply.Header.Revision, len(reply.Responses))
	}
	create(id, "k8s:a")
	create(id, "k8s:b")
	for _, condition := range []string{id, "cilium/none"} {
		exists := client.Compare(client.Version(condition), "!=", 0)
		reply, err := p.client.Txn(p.ctx).If(exists).Then(client.OpPut(value, "1001")).Commit()
		must(err)
		say("create if %s exists: %t", condition, reply.Succeeded)
	}
	found, err := p.client.Get(p.ctx, id)
	must(err)
	one := found.Kvs[0]
	say("get: %s=%s create %d mod %d version %d, of the session %t", one.Key, one.Value,
		one.CreateRevision, one.ModRevision, one.Version, one.Lease == int64(p.session.Lease()))
	missing, err := p.client.Get(p.ctx, "cilium/none")
	must(err)
	say("get none: count %d at %d", missing.Count, missing.Header.Revision)
	_, err = p.client.Put(p.ctx, id, "k8s:a", client.WithLease(77))
	say("put with a lease that is none: %s", told(err))
	deleted, err := p.client.Delete(p.ctx, "cilium/state/", client.WithPrefix(), client.WithPrevKV())
	must(err)
	say("delete prefix: %d, %d of them told", deleted.Deleted, len(deleted.PrevKvs))
}

// underLock: the calls whose names end in IfLocked.
func (p *peer) underLock() {
	mutex := concurrency.NewMutex(p.locks, "cilium/state/identities/v1/locks/a")
	must(mutex.Lock(p.ctx))
	held := mutex.IsOwner()
	const key = "cilium/state/locked/a"
	do := func(name string, compares []client.Cmp, op client.Op, or ...client.Op) {
		reply, err := p.client.Txn(p.ctx).If(compares...).Then(op).Else(or...).Commit()
		if err != nil {
			say("%s: %s", name, told(err))
			return
		}
		text := ""
		for _, response := range reply.Responses {
			if got := response.GetResponseRange(); got != nil {
				text += fmt.Sprintf(" count %d more %t", got.Count, got.More)
				for _, kv := range got.Kvs {
					text += fmt.Sprintf(" %s=%s", kv.Key, kv.Value)
				}
			}
		}
		say("%s: %t%s", name, reply.Succeeded, text)
	}
	isNew := client.Compare(client.Version(key), "=", 0)
	leased := client.WithLease(p.session.Lease())
	do("create", []client.Cmp{isNew, held}, client.OpPut(key, "1", leased), client.OpGet(key))
	do("create again", []client.Cmp{isNew, held}, client.OpPut(key, "2", leased), client.OpGet(key))
	do("update", []client.Cmp{held}, client.OpPut(key, "3", leased))
	do("get", []client.Cmp{held}, client.OpGet(key))
	do("get prefix", []client.Cmp{held},
		client.OpGet("cilium/state/", client.WithPrefix(), client.WithLimit(1)))
	do("list prefix", []client.Cmp{held}, client.OpGet("cilium/", client.WithPrefix(), client.WithKeysOnly()))
	do("update with a lease that is none", []client.Cmp{held}, client.OpPut(key, "4", client.WithLease(77)))
	must(mutex.Unlock(p.ctx))
	do("update without the lock", []client.Cmp{held}, client.OpPut(key, "5"), client.OpGet(key))
	do("delete without the lock", []client.Cmp{held}, client.OpDelete(key))
	_, err := concurrency.NewSTM(p.client, func(stm concurrency.STM) error {
		stm.Put(key, stm.Get(key)+"!")
		stm.Del("cilium/none")
		return nil
	})
	must(err)
	do("get", nil, client.OpGet(key))
}

// lists: pages at the revision of the first, as before a watch.
func (p *peer) lists() {
	const prefix = "cilium/state/nodes/v1/"
	for i := range 7 {
		_, err := p.client.Put(p.ctx, fmt.Sprintf("%sdefault/node%d", prefix, i), "up")
		must(err)
	}
	end, start := client.GetPrefixRangeEnd(prefix), prefix
	for revision := int64(0); ; {
		page, err := p.client.Get(p.ctx, start, client.WithRange(end), client.WithRev(revision),
			client.WithSort(client.SortByKey, client.SortAscend), client.WithSerializable(), client.WithLimit(3))
		must(err)
		say("page: %d of %d, more %t", len(page.Kvs), page.Count, page.More)
		if !page.More {
			break
		}
		if revision == 0 {
			revision = page.Header.Revision
			_, err = p.client.Delete(p.ctx, prefix+"default/node5")
			must(err)
		}
		start = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
	_, err := p.client.Get(p.ctx, prefix, client.WithRev(1_000_000))
	say("get from the future: %s", told(err))
}

func event(e *client.Event) string {
	kind := e.Type.String()
	if e.IsCreate() {
		kind = "CREATE"
	} else if e.IsModify() {
		kind = "MODIFY"
	}
	text := fmt.Sprintf("%s %s=%s at %d", kind, e.Kv.Key, e.Kv.Value, e.Kv.ModRevision)
	if e.PrevKv != nil {
		text += fmt.Sprintf(" before %s", e.PrevKv.Value)
	}
	return text
}

// await tells what a watch brings until it has brought so many events, or ends.
func await(name string, watch client.WatchChan, count int) {
	deadline := time.After(patience)
	for count > 0 {
		select {
		case response, isOpen := <-watch:
			if !isOpen {
				say("%s: closed", name)
				return
			}
			if err := response.Err(); err != nil {
				say("%s: %s, compacted %d", name, told(err), response.CompactRevision)
				continue
			}
			for _, e := range response.Events {
				say("%s: %s", name, event(e))
			}
			count -= len(response.Events)
		case <-deadline:
			say("%s: nothing more came", name)
			os.Exit(1)
		}
	}
}

// watches: from the list's revision on, a heartbeat, what was compacted, what is to come.
func (p *peer) watches() {
	const prefix, heartbeat = "cilium/state/nodes/v1/", "cilium/.heartbeat"
	ctx, cancel := context.WithCancel(client.WithRequireLeader(p.ctx))
	list, err := p.client.Get(p.ctx, prefix, client.WithPrefix(), client.WithSerializable())
	must(err)
	next := list.Header.Revision + 1
	nodes := p.client.Watch(ctx, prefix, client.WithPrefix(), client.WithRev(next))
	beats := p.client.Watch(ctx, heartbeat, client.WithPrefix(), client.WithCreatedNotify())
	created := <-beats
	say("heartbeats: created %t, canceled %t", created.Created, created.Canceled)
	previous := p.client.Watch(ctx, prefix, client.WithPrefix(), client.WithRev(next), client.WithPrevKV(),
		client.WithFilterPut(), client.WithFragment(), client.WithProgressNotify())
	_, err = p.client.Put(p.ctx, heartbeat, "2026-11-22T00:00:00Z", client.WithLease(p.session.Lease()))
	must(err)
	await("heartbeats", beats, 1)
	_, err = p.client.Put(p.ctx, prefix+"default/node7", "up")
	must(err)
	_, err = p.client.Txn(p.ctx).Then(client.OpPut(prefix+"default/node7", "down"),
		client.OpDelete(prefix+"default/node1"), client.OpDelete(prefix+"default/node2")).Commit()
	must(err)
	await("nodes", nodes, 4)
	await("deletions", previous, 2)
	ahead := p.client.Watch(ctx, prefix, client.WithPrefix(), client.WithRev(next+4))
	for _, value := range []string{"a", "b"} {
		_, err = p.client.Put(p.ctx, prefix+"default/node8", value)
		must(err)
	}
	await("from a revision to come", ahead, 1)
	await("nodes", nodes, 2)
	_, err = p.client.Compact(p.ctx, next+2)
	must(err)
	await("from what was compacted", p.client.Watch(ctx, prefix, client.WithPrefix(), client.WithRev(next)), 1)
	_, err = p.client.Compact(p.ctx, next)
	say("compact once more: %s", told(err))
	_, err = p.client.Get(p.ctx, prefix, client.WithRev(next))
	say("get what was compacted: %s", told(err))
	must(p.client.RequestProgress(ctx))
	progress := <-nodes
	say("progress: %t at %d", progress.IsProgressNotify(), progress.Header.Revision-next)
	cancel()
	await("nodes after the end", nodes, 1)
}

// rivals: two sessions want one lock; the second waits, or is told.
func (p *peer) rivals() {
	const path = "cilium/state/locks/rivals"
	first, second := concurrency.NewMutex(p.locks, path), concurrency.NewMutex(p.session, path)
	must(first.Lock(p.ctx))
	say("try: %s", told(second.TryLock(p.ctx)))
	short, cancel := context.WithTimeout(p.ctx, 200*time.Millisecond)
	say("wait a little: %s", told(second.Lock(short)))
	cancel()
	waiters, err := p.client.Get(p.ctx, path, client.WithPrefix(), client.WithCountOnly())
	must(err)
	say("in the queue after that: %d", waiters.Count)
	got := make(chan error, 1)
	go func() { got <- second.Lock(p.ctx) }()
	for waiters.Count < 2 {
		waiters, err = p.client.Get(p.ctx, path, client.WithPrefix())
		must(err)
	}
	must(first.Unlock(p.ctx))
	say("wait until it is free: %s", told(<-got))
	must(second.Unlock(p.ctx))
}

// expired: a lease that ended somewhere else ends its session, its keys and its lock.
func (p *peer) expired() {
	short, err := concurrency.NewSession(p.client, concurrency.WithTTL(2))
	must(err)
	mutex := concurrency.NewMutex(short, "cilium/state/locks/short")
	must(mutex.Lock(p.ctx))
	_, err = p.client.Put(p.ctx, "cilium/short", "x", client.WithLease(short.Lease()))
	must(err)
	watch := p.client.Watch(p.ctx, "cilium/short")
	_, err = p.client.Revoke(p.ctx, short.Lease())
	must(err)
	await("a key of the lease", watch, 1)
	select {
	case <-short.Done():
		say("the session is done")
	case <-time.After(patience):
		say("the session goes on")
	}
	_, err = p.client.Put(p.ctx, "cilium/short", "x", client.WithLease(short.Lease()))
	say("put: %s", told(err))
	_, err = p.client.KeepAliveOnce(p.ctx, short.Lease())
	say("keep alive: %s", told(err))
	ttl, err := p.client.TimeToLive(p.ctx, short.Lease())
	must(err)
	say("time to live: %d", ttl.TTL)
	orphan, err := concurrency.NewSession(p.client, concurrency.WithTTL(2))
	must(err)
	held, waits := concurrency.NewMutex(orphan, "cilium/o"), concurrency.NewMutex(p.locks, "cilium/o")
	must(held.Lock(p.ctx))
	orphan.Orphan()
	must(waits.Lock(p.ctx))
	say("the lock of who went was free after its lease")
	must(waits.Unlock(p.ctx))
}
