// shell: `megaplane fleet`, capacity for many clusters
import { Command } from 'commander';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { parse } from 'yaml';
import { addLogOptions, logger } from '../logging.ts';
import type { LogFlags } from '../logging.ts';
import { readNamed } from '../named-file.ts';
import { serve } from '../service.ts';
import { oneOf } from '../usage.ts';

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
  return fleet.addCommand(explainCommand(done));
}

function definitionsCommand(done: Done): Command {
  return new Command('definitions')
    .summary('the kinds of objects that the fleet adds to a cluster')
    .description(
      'Writes the definitions of CapacityRequest, UpcomingNode and AvailableCapacity as YAML.\n\n' +
        'Example: megaplane fleet definitions | kubectl apply -f -',
    )
    .action(async () => {
      const { definitionsYaml } = await import('@megaplane/fleet/contract/definitions');
      process.stdout.write(definitionsYaml(), () => done(EXIT_DONE));
    });
}

interface PodsFlags extends LogFlags {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly classPenalties?: string;
}

function podsCommand(done: Done): Command {
  const command = new Command('pods')
    .summary('a CapacityRequest for each pod of a cluster')
    .description(
      'Makes one CapacityRequest for each pod, placed or not, and deletes it when the pod ends.\n\n' +
        'Example: megaplane fleet pods --kubeconfig ./megaplane-data/kubeconfig',
    )
    .requiredOption('--kubeconfig <file>', 'how to reach the API server')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--class-penalties <file>', 'penalties of priority classes, in YAML');
  return addLogOptions(command).action(async (flags: PodsFlags) => {
    done(
      await serve(async () => {
        const { runPods } = await import('@megaplane/fleet/pods/run');
        const { kubeconfig, context, classPenalties } = flags;
        return runPods({
          kubeconfig,
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
      const { explain } = await import('../fleet-explain.ts');
      done(await explain(process.stdin, process.stdout));
    });
}
