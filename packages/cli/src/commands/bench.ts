/** `megaplane bench`: comparisons with the real programs, from the `bench` folder of a checkout. */
import { Command } from 'commander';
import { millionCommand } from './bench-million.ts';
import { traceCommand } from './bench-trace.ts';

/** Each is a program of its own, `bench/<name>.ts`, with flags of its own. */
const BENCHES = {
  store: 'puts over gRPC, beside etcd on the same core',
  journal: 'groups of stores on a journal, beside three members of etcd',
  wire: 'unary gRPC, beside node:http2 on the same core; memory of idle connections',
  apiserver: 'each kind of request by itself: rates, lists, watches, memory, start',
  connections: 'thousands of real connections with watches: memory, time, what a million need',
  network: "a node's network: plugin, first packet, entries, the plan",
  reconnect: 'a crowd that comes back, with tickets and with whole handshakes',
  leases: 'renewals of leases through the API server',
  threads: 'what each thread of the API server spends on each kind of request',
  'fan-out': 'telling watches of changes: everybody of everything, and shards',
  hostile: 'what a kubelet feels beside three clients that push as hard as they can',
  scheduler: 'decisions alone, by shape of pods and number of nodes',
  'scheduler-shards': 'full evaluation with shards, beside the single process',
  'scheduler-perf': "kube-scheduler's own performance tests, end to end",
  'scheduler-restart': 'a scheduler that starts beside a full cluster: time, memory, pauses',
  renewals: 'what a renewal costs the simulator, over TLS',
  hold: 'a cluster that only lives: lateness of leases, processor time, memory',
  storms: '429s, refusals, lost connections, restarts and set clocks in the middle of work',
  controllers: 'scaling, daemons and owners of many: what controllers and API server spend',
  crds: 'CustomResourceDefinitions by the thousand: cost, stalls, discovery, restart',
  objects: 'what one more object of each kind costs each process, and what deletion gives back',
  soak: 'a cluster of constant size at work for minutes or hours: what grows',
  envtest: 'start, stop and memory of what envtest starts, beside the real pair',
  start: 'to the first answer: packed, and from the sources',
  up: 'a whole cluster from nothing: timings, memory, processor time',
  fleet: 'decisions of a shard, memory, roll-ups, cost of machines, beside their goals',
  sizes: 'what one thing costs the API server by how many there are, drawn',
  compare: 'the same work on ours and on the real programs, as ratios',
  nodes: 'creates Nodes on any server, by number',
  pods: 'creates pods on any server: alone, of Deployments, Jobs or gangs',
  delete: 'deletes numbered objects on any server, and waits until they are gone',
  gaps: 'which numbered objects are missing on any server',
  'lease-flood': 'writes leases to an API server or etcd as fast as they are taken',
} as const;

export function benchCommand(done: (exitCode: number) => void): Command {
  const bench = new Command('bench')
    .summary('comparisons with the real programs')
    .description(
      'Measures one part, beside the program that it stands for where there is one.\n\n' +
        'Example: megaplane bench up --nodes 1000 --runs 1',
    );
  bench.addCommand(millionCommand(done));
  bench.addCommand(traceCommand(done));
  for (const [name, summary] of Object.entries(BENCHES)) {
    bench
      .command(`${name} [flags...]`)
      .summary(summary)
      .description(`${summary}\n\nExample: megaplane bench ${name}`)
      .allowUnknownOption()
      .helpOption(false)
      .action(async (flags: readonly string[]) => {
        const { runBench } = await import('../service/bench-program.ts');
        done(await runBench(name, flags));
      });
  }
  return bench;
}
