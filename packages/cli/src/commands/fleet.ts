// shell: `megaplane fleet`, capacity for many clusters
import { Command } from 'commander';
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
