/** `megaplane scheduler`: finds nodes for pods on any Kubernetes API server. */
import { Command } from 'commander';
import { addLogOptions, logger } from '../logging.ts';
import type { LogFlags } from '../logging.ts';
import { serve } from '../service.ts';
import { durationOption, flagValue, wholeNumber } from '../usage.ts';

interface Flags extends LogFlags {
  readonly kubeconfig?: string;
  readonly config?: string;
  readonly leaderElect: boolean;
  readonly seed: number;
  readonly checkEvery: number;
  readonly connections: number;
  readonly metricsAddress: string;
  readonly eventsPerSecond: number;
  readonly podMaxInUnschedulablePodsDuration: number;
}

export function schedulerCommand(done: (exitCode: number) => void): Command {
  const command = addLogOptions(described()).action(async (flags: Flags) => done(await run(flags)));
  command
    .command('explain')
    .summary('why a pod goes where it goes, or nowhere')
    .description(
      'Reads a scenario (nodes, pods and steps as JSON) and prints for each step the verdict of\n' +
        'each filter, the scores, the best nodes, or why none fits and whom it would evict.\n\n' +
        'Example: megaplane scheduler explain -f scenario.json',
    )
    .option('-f, --filename <file>', 'the scenario (default: stdin)')
    .action(async (flags: { readonly filename?: string }) => {
      const { explainFile } = await import('../scheduler-files.ts');
      done(explainFile(flags.filename));
    });
  return command;
}

function described(): Command {
  return new Command('scheduler')
    .summary('finds nodes for pods on any Kubernetes API server')
    .description(
      'Finds the node that full evaluation would find, for each pod that has none.\n\n' +
        'Example: megaplane scheduler --kubeconfig ./megaplane-data/scheduler.kubeconfig',
    )
    .optionsGroup('Cluster:')
    .option('--kubeconfig <file>', 'how to reach the API server')
    .option('--connections <count>', 'connections to the server', wholeNumber(1, 1000), 1)
    .optionsGroup('Scheduling:')
    .option('--config <file>', 'a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)')
    .option('--seed <number>', 'decides between equally good nodes', wholeNumber(0, 2 ** 48), 1)
    .option(
      '--check-every <count>',
      'compare one decision in so many with full evaluation; 0 = none',
      wholeNumber(0, 1e9),
      0,
    )
    .option(
      '--events-per-second <count>',
      'events posted at most; 0 = none',
      wholeNumber(0, 1e6),
      50,
    )
    .addOption(
      durationOption(
        '--pod-max-in-unschedulable-pods-duration <duration>',
        'after this a pod is tried again without a reason',
        300_000,
      ),
    )
    .optionsGroup('Run:')
    .option('--leader-elect [bool]', 'wait for the lease before doing anything', flagValue, true)
    .option(
      '--metrics-address <host:port>',
      'of /metrics and health; port 0 = a free one',
      '127.0.0.1:0',
    );
}

function run(flags: Flags): Promise<number> {
  return serve(async () => {
    if (flags.kubeconfig === undefined) throw new Error('--kubeconfig: a file is needed');
    const { runScheduler } = await import('@megaplane/scheduler/run-scheduler');
    const { readConfiguration } = await import('../scheduler-files.ts');
    return runScheduler({
      kubeconfig: flags.kubeconfig,
      ...(flags.config === undefined ? {} : { configuration: readConfiguration(flags.config) }),
      leaderElect: flags.leaderElect,
      seed: flags.seed,
      checkedEvery: flags.checkEvery,
      connections: flags.connections,
      metricsAddress: flags.metricsAddress,
      eventsPerSecondMax: flags.eventsPerSecond,
      podMaxInUnschedulableMs: flags.podMaxInUnschedulablePodsDuration,
      log: logger(flags),
    });
  });
}
