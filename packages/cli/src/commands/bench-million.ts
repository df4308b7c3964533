/** `megaplane bench million`: the founding experiment and its report. */
import { Command } from 'commander';
import { path, wholeNumber } from '../parsers/flag-parsers.ts';

const NODES_MAX = 100_000_000;

interface Flags {
  readonly nodes: number;
  readonly pods?: number;
  readonly out: string;
  readonly kubeconfig?: string;
}

export function millionCommand(done: (exitCode: number) => void): Command {
  return new Command('million')
    .summary('a million nodes, then a million pods while their leases go on, and a report')
    .description(
      'Repeats the founding experiment: nodes are registered and hold their leases, pods are\n' +
        'created meanwhile, bound and run. All is looked at once a second. Writes report.html,\n' +
        'report.json and a picture for each graph. Ctrl-C reports what there is.\n\n' +
        'Example: megaplane bench million --nodes 10000 --out ./report',
    )
    .option('--nodes <count>', 'simulated nodes', wholeNumber(1, NODES_MAX), 1_000_000)
    .option('--pods <count>', 'pods (default: as many as nodes)', wholeNumber(0, NODES_MAX))
    .option('--out <dir>', 'where the report goes', path, './million-report')
    .option('--kubeconfig <file>', 'nodes and pods of this cluster, not of a new one', path)
    .action(async (flags: Flags) => {
      const { runMillion } = await import('../million/run-million.ts');
      const { nodes, pods = nodes, out, kubeconfig } = flags;
      const of = kubeconfig === undefined ? '' : ' --kubeconfig …';
      const command = `megaplane bench million --nodes ${nodes} --pods ${pods}${of}`;
      const place = kubeconfig === undefined ? {} : { kubeconfig };
      done(await runMillion({ nodes, pods, out, command, ...place }));
    });
}
