// shell: `megaplane fleet`, capacity for many clusters
import { Command } from 'commander';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { parse } from 'yaml';
import { addLogOptions, logger } from '../service/logging.ts';
import type { LogFlags } from '../service/logging.ts';
import { addTlsFlags, tlsBytesOf } from '../flags/fleet-tls.ts';
import type { TlsFlags } from '../flags/fleet-tls.ts';
import { readNamed } from '../flags/named-file.ts';
import { serve } from '../service/service.ts';
import { hostPort, oneOf, wholeNumber } from '../parsers/flag-parsers.ts';
import type { HostPort } from '../parsers/flag-parsers.ts';
import { coordinatorCommand } from './fleet-coordinator.ts';
import { ctlCommand } from './fleet-ctl.ts';
import { providerCommand } from './fleet-provider.ts';
import { shardCommand } from './fleet-shard.ts';

const EXIT_DONE = 0;

type Done = (exitCode: number) => void;

export function fleetCommand(done: Done): Command {
  const fleet = new Command('fleet')
    .summary('capacity for many clusters')
    .description(
      'Decides which machines exist, which cluster each serves and when they go.\n\n' +
        'Example: megaplane fleet explain --output json < questions.jsonl',
    );
  fleet.addCommand(definitionsCommand(done));
  fleet.addCommand(podsCommand(done));
  fleet.addCommand(operatorCommand(done));
  fleet.addCommand(shardCommand(done));
  fleet.addCommand(coordinatorCommand(done));
  fleet.addCommand(providerCommand(done));
  fleet.addCommand(ctlCommand(done));
  return fleet.addCommand(explainCommand(done));
}

function definitionsCommand(done: Done): Command {
  return new Command('definitions')
    .summary('the kinds of objects that the fleet adds to a cluster')
    .description(
      'Writes CapacityRequest, UpcomingNode and AvailableCapacity as definitions in YAML.\n\n' +
        'Example: megaplane fleet definitions | kubectl apply -f -',
    )
    .action(async () => {
      const { definitionsYaml } = await import('@megaplane/fleet/contract/definitions');
      await new Promise((resolve) => process.stdout.write(definitionsYaml(), resolve));
      done(EXIT_DONE);
    });
}

interface PodsFlags extends LogFlags {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly classPenalties?: string;
  readonly metricsAddress?: string;
}

function podsCommand(done: Done): Command {
  const command = new Command('pods')
    .summary('a CapacityRequest for each pod of a cluster')
    .description(
      'One CapacityRequest for each pod, placed or not, from its birth to its end.\n\n' +
        'Example: megaplane fleet pods --kubeconfig ./megaplane-data/kubeconfig',
    )
    .requiredOption('--kubeconfig <file>', 'how to reach the API server')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--class-penalties <file>', 'penalties of priority classes, in YAML')
    .option('--metrics-address <host:port>', 'metrics and health (default: none)');
  return addLogOptions(command).action(async (flags: PodsFlags) => {
    done(
      await serve(async () => {
        const { runPods } = await import('@megaplane/fleet/pods/run');
        const { kubeconfig, context, classPenalties, metricsAddress } = flags;
        return runPods({
          kubeconfig,
          ...(metricsAddress === undefined ? {} : { metricsAddress }),
          ...(context === undefined ? {} : { context }),
          ...(classPenalties === undefined
            ? {}
            : {
                penalties: parse(
                  String(readNamed('--class-penalties', classPenalties)),
                ) as JsonValue,
              }),
          log: logger(flags),
        });
      }),
    );
  });
}

interface OperatorFlags extends LogFlags, TlsFlags {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly clusterId: string;
  readonly shardAddr: HostPort;
  readonly rollUpInterval: number;
  readonly bootstrapTemplateFile?: string;
  readonly bootstrapTtl: number;
  readonly groups: 'namespaced' | 'shared';
  readonly metricsAddress?: string;
}

function operatorCommand(done: Done): Command {
  const command = new Command('operator')
    .summary('what stands in a cluster for the fleet')
    .description(
      'Rolls up the CapacityRequests of a cluster for its shard, and does what the shard asks:\n' +
        'bootstrap blobs, UpcomingNodes, drains. It dials out, and listens on nothing.\n\n' +
        'Example: megaplane fleet operator --kubeconfig FILE --cluster-id c1 --shard-addr h:7780',
    )
    .requiredOption('--kubeconfig <file>', 'how to reach the API server')
    .option('--context <name>', 'context of the kubeconfig')
    .requiredOption('--cluster-id <id>', 'name of the cluster, the same for its whole life')
    .requiredOption('--shard-addr <host:port>', 'where its shard is', hostPort)
    .option('--roll-up-interval <seconds>', 'between roll-ups', wholeNumber(1, 3600), 10)
    .option('--bootstrap-template-file <file>', 'what a machine is given to join the cluster')
    .option('--bootstrap-ttl <seconds>', 'for how long that is good', wholeNumber(1, 86_400), 3600)
    .option(
      '--groups <how>',
      'whether gangs of two namespaces with one selector are two (namespaced) or one (shared)',
      oneOf(['namespaced', 'shared']),
      'namespaced',
    )
    .option('--metrics-address <host:port>', 'metrics and health (default: it listens on nothing)');
  addTlsFlags(command, 'the operator', 'the shard');
  return addLogOptions(command).action(async (flags: OperatorFlags) => {
    const { kubeconfig, context, clusterId, shardAddr, bootstrapTemplateFile: template } = flags;
    // once now, so that a wrong file is told at the start; then before each dial
    const isSecure = tlsBytesOf(command, flags) !== undefined;
    const { metricsAddress } = flags;
    done(
      await serve(async () => {
        const { runOperator } = await import('@megaplane/fleet/operator/run');
        return runOperator({
          ...{ kubeconfig, clusterId, ...shardAddr, log: logger(flags) },
          ...(context === undefined ? {} : { context }),
          ...(isSecure ? { tls: () => tlsBytesOf(command, flags) ?? {} } : {}),
          ...(metricsAddress === undefined ? {} : { metricsAddress }),
          rollUpMs: flags.rollUpInterval * 1000,
          groupsByNamespace: flags.groups === 'namespaced',
          bootstrap:
            template === undefined ? '' : String(readNamed('--bootstrap-template-file', template)),
          bootstrapTtlSeconds: flags.bootstrapTtl,
        });
      }),
    );
  });
}

function explainCommand(done: Done): Command {
  return new Command('explain')
    .summary('what the rules answer to given worlds')
    .description(
      'Reads questions from standard input, one JSON object a line, and answers each with one\n' +
        'JSON line, in order. A question that cannot be answered gets {"error": "..."}.\n\n' +
        'Example: megaplane fleet explain --output json < questions.jsonl',
    )
    .option('--output <format>', 'json', oneOf(['json']), 'json')
    .action(async () => {
      const { explain } = await import('./fleet-explain.ts');
      done(await explain(process.stdin, process.stdout));
    });
}
