import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SchedulerCore } from '../core/scheduler-core.ts';

interface Wish {
  readonly cpu?: string;
  readonly priority?: number;
  readonly node?: string;
  readonly nominated?: string;
  readonly group?: string;
}

/** A scheduler that is told of pods, and what it decides after each. */
class Bench {
  readonly core: SchedulerCore;
  readonly #rows: string[] = [];
  #nowMs = 0;

  constructor(nodes: Readonly<Record<string, string>>) {
    const keyOf = (id: number): string => `default/${this.#rows[id]}`;
    this.core = new SchedulerCore({ seed: 1, keyOf });
    for (const [name, cpu] of Object.entries(nodes)) {
      const allocatable = { cpu, memory: '8Gi', pods: '10' };
      this.core.nodeSeen({ metadata: { name }, status: { allocatable } }, 0);
    }
  }

  group(name: string, minCount: number): void {
    const spec = { schedulingPolicy: { gang: { minCount } } };
    const group = { metadata: { name, namespace: 'default' }, spec };
    this.core.objectSeen('PodGroup', group, 0);
  }

  see(name: string, wish: Wish): readonly string[] {
    const { cpu = '0', priority = 0, node, nominated, group } = wish;
    const isNew = !this.#rows.includes(name);
    const id = isNew ? this.#rows.push(name) - 1 : this.#rows.indexOf(name);
    const pod = {
      metadata: { name, namespace: 'default' },
      spec: {
        priority,
        containers: [{ name: 'c', resources: { requests: { cpu } } }],
        ...(node === undefined ? {} : { nodeName: node }),
        ...(group === undefined ? {} : { schedulingGroup: { podGroupName: group } }),
      },
      ...(nominated === undefined ? {} : { status: { nominatedNodeName: nominated } }),
    };
    const bytes = Buffer.from(JSON.stringify(pod));
    assert(this.core.podSeen(id, isNew, bytes, 0, bytes.length, this.#nowMs));
    return this.#decide();
  }

  gone(name: string): readonly string[] {
    this.core.podGone(this.#rows.indexOf(name), this.#nowMs);
    return this.#decide();
  }

  /** Nobody is in backoff any more by the time of the decisions. */
  #decide(): readonly string[] {
    this.#nowMs += 60_000;
    const lines: string[] = [];
    this.core.tick(this.#nowMs);
    for (let next = this.core.attempt(this.#nowMs); next !== null;) {
      const name = this.#rows[next.id] ?? '';
      if (next.kind === 'bind') lines.push(`${name} -> ${this.core.nodes.nameOf(next.node)}`);
      else {
        const victims = next.failure.nomination?.victims.map((id) => this.#rows[id] ?? '') ?? [];
        lines.push([name, ...victims].join(' evicts '));
      }
      next = this.core.attempt(this.#nowMs);
    }
    return lines;
  }
}

test('who had nobody to evict tries again where lesser pods came and another one went', () => {
  const bench = new Bench({ n: '4' });
  bench.see('equal', { cpu: '2', priority: 100, node: 'n' });
  assert.deepEqual(bench.see('big', { cpu: '3', priority: 100 }), ['big']);
  bench.see('lesser', { cpu: '2', node: 'n' });
  assert.deepEqual(bench.gone('equal'), ['big evicts lesser']);
});

test('those who counted a pod in on a node hear of it when it waits for another one', () => {
  const bench = new Bench({ n: '1', m: '1' });
  const rival = { cpu: '2', priority: 100 };
  assert.deepEqual(bench.see('rival', rival), ['rival']);
  bench.see('rival', { ...rival, nominated: 'n' });
  bench.see('other', { cpu: '1', node: 'm' });
  assert.deepEqual(bench.see('pod', { cpu: '1' }), ['pod']);
  assert.deepEqual(bench.see('rival', { ...rival, nominated: 'm' }), ['pod -> n']);
});

test('a gang that has lost a member keeps no room', () => {
  const bench = new Bench({ n: '2' });
  bench.group('gang', 2);
  bench.see('one', { cpu: '1', node: 'n' });
  bench.see('two', { cpu: '1', node: 'n' });
  bench.see('left', { cpu: '1', priority: 100, group: 'gang' });
  const decided = bench.see('right', { cpu: '1', priority: 100, group: 'gang' });
  assert(
    decided.some((line) => line.includes('evicts')),
    decided.join(),
  );
  bench.gone('right');
  bench.gone('one');
  bench.gone('two');
  assert.equal(bench.core.nominator.size, 0);
  assert.deepEqual(bench.see('pod', { cpu: '2' }), ['pod -> n']);
});
