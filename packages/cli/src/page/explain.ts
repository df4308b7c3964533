// shell: runs a command of this program
/** `scheduler explain` for one pod, one at a time: it reads the whole cluster. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ownCommand } from '../service/self.ts';

/** Beyond so many nodes reading all is not done at a click. */
export const EXPLAINED_NODES_MAX = 20_000;
const EXPLAIN_MS_MAX = 60_000;
const EXPLAIN_BYTES_MAX = 1024 * 1024;
const NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

let isExplaining = false;

/** The report as text. Rejects with a text for people. */
export async function explainPod(
  kubeconfig: string,
  namespace: string,
  name: string,
  nodes: number,
): Promise<string> {
  if (!NAME.test(namespace) || !NAME.test(name)) throw new Error('no name of a pod');
  if (nodes > EXPLAINED_NODES_MAX) {
    throw new Error(
      `explaining reads all ${nodes.toLocaleString('en-US')} nodes; on a machine that may, run: ` +
        `megaplane scheduler explain ${name} -n ${namespace} --kubeconfig ${kubeconfig}`,
    );
  }
  if (isExplaining) throw new Error('another pod is being explained; try again in a moment');
  isExplaining = true;
  try {
    const words = ['scheduler', 'explain', name, '-n', namespace, '--kubeconfig', kubeconfig];
    const { command, env } = ownCommand([], words, process.env);
    const [program, ...args] = command;
    const options = { env, timeout: EXPLAIN_MS_MAX, maxBuffer: EXPLAIN_BYTES_MAX };
    const { stdout } = await promisify(execFile)(program, args, options);
    return stdout;
  } catch (error) {
    const { stderr, stdout } = error as { readonly stderr?: string; readonly stdout?: string };
    const text = (stdout ?? '') !== '' ? stdout : stderr;
    throw new Error(text?.trim() ?? (error as Error).message, { cause: error });
  } finally {
    isExplaining = false;
  }
}
