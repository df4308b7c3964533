// shell: `megaplane fleet`, capacity for many clusters
import { Command } from 'commander';
import { oneOf } from '../usage.ts';

type Done = (exitCode: number) => void;

export function fleetCommand(done: Done): Command {
  const fleet = new Command('fleet')
    .summary('capacity for many clusters')
    .description(
      'Decides which machines exist, which cluster each serves and when they go.\n\n' +
        'Example: megaplane fleet explain --output json < questions.jsonl',
    );
  return fleet.addCommand(explainCommand(done));
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
