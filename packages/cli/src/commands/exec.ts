// shell: signals of the user's and the environment of a command
/** `megaplane exec`: a command with a cluster of its own. */
import { guarded } from '@megaplane/base/deferred';
import { Command, InvalidArgumentError } from 'commander';
import { list, wholeNumber } from '../parsers/flag-parsers.ts';
import { chosenComponents, COMPONENTS, type Component } from '../up/plan.ts';
import { NODES_MAX } from './up.ts';

/** The cluster did not come up: not to be taken for a word of the command's. */
const EXIT_NO_CLUSTER = 125;

interface Flags {
  readonly nodes: number;
  readonly components?: readonly Component[];
  readonly stages?: readonly string[];
}

function components(text: string): readonly Component[] {
  const chosen = chosenComponents(list(text, undefined));
  if (typeof chosen === 'string') throw new InvalidArgumentError(chosen);
  return chosen;
}

function stageFiles(text: string): readonly string[] {
  return list(text, undefined);
}

export function execCommand(done: (exitCode: number) => void): Command {
  const command = new Command('exec');
  return command
    .summary('a cluster for as long as a command runs')
    .usage('[flags] -- COMMAND...')
    .description(
      'Starts a cluster, runs the command with its KUBECONFIG, and removes the cluster.\n' +
        "The exit status is the command's; 125: the cluster did not come up, 126: the command\n" +
        'cannot be run, 127: there is none of that name.\n\n' +
        'Example: megaplane exec --nodes 3 -- kubectl get nodes',
    )
    .argument('<command...>', 'what to run')
    .passThroughOptions()
    .option('--nodes <count>', 'simulated nodes', wholeNumber(0, NODES_MAX), 1)
    .option('--components <list>', `of ${COMPONENTS.join(', ')}; -name leaves one out`, components)
    .option(
      '--stages <files>',
      "kwok's files for the simulated nodes, or sets, by commas",
      stageFiles,
    )
    .action(async (words: readonly string[], flags: Flags) => done(await run(words, flags)));
}

/** Resolves with the exit code. */
async function run(words: readonly string[], flags: Flags): Promise<number> {
  const [{ startEphemeral }, { commandFault, exitCodeOf, PASSED_SIGNALS, runCommand }] =
    await Promise.all([import('../ephemeral/cluster.ts'), import('../ephemeral/command.ts')]);
  const fault = commandFault(words[0] ?? '', process.env['PATH'] ?? '');
  if (fault !== null) {
    process.stderr.write(`megaplane: ${fault.text}\n`);
    return fault.exitCode;
  }
  const end = new AbortController();
  let onSignal = (name: NodeJS.Signals): void => end.abort(name);
  for (const name of PASSED_SIGNALS)
    process.on(
      name,
      guarded(() => onSignal(name)),
    );
  const report = (text: string): void => void process.stderr.write(`megaplane: ${text}\n`);
  const { nodes, components: asked = COMPONENTS, stages = [] } = flags;
  let cluster;
  try {
    const { signal } = end;
    cluster = await startEphemeral({ nodes, components: asked, stages, signal, report });
  } catch (error) {
    if (end.signal.aborted) return exitCodeOf(end.signal.reason as NodeJS.Signals);
    report(error instanceof Error ? error.message : String(error));
    return EXIT_NO_CLUSTER;
  }
  try {
    const env = { ...process.env, KUBECONFIG: cluster.kubeconfig };
    const running = runCommand(words, env);
    if (running.pid !== undefined) cluster.guardian.knowCommand(running.pid);
    onSignal = (name) => running.signal(name);
    const exitCode = await running.ended;
    cluster.guardian.knowCommand(null);
    return exitCode;
  } finally {
    // What was meant for the command comes too late; the rest takes a moment.
    onSignal = () => {};
    await cluster.stop();
  }
}
