// shell: listens, to see which ports are free
/** Which ports of this machine a cluster takes. */
import { guarded } from '@megaplane/base/deferred';
import { createServer } from 'node:net';

export const SECURE_PORT = 6443;
const KUBELET_PORT = 10_250;
const CONTROLLERS_PORT = 10_257;
const SCHEDULER_PORT = 10_259;
/** So many ports are looked at before it is left to the system. */
const TRIES_MAX = 100;

/** Ports that others look for parts of a cluster at; 0: it is not free, or any will do. */
export interface UsualPorts {
  readonly kubeletPort: number;
  readonly controllersPort: number;
  readonly schedulerPort: number;
}

/** The usual ports of this machine that are free; none where the server has no usual one either. */
export async function usualPorts(securePort: number): Promise<UsualPorts> {
  const free = async (port: number): Promise<number> =>
    securePort !== 0 && (await isFree(port)) ? port : 0;
  return {
    kubeletPort: await free(KUBELET_PORT),
    controllersPort: await free(CONTROLLERS_PORT),
    schedulerPort: await free(SCHEDULER_PORT),
  };
}

/** `asked`, or the next port that is free; 0, which is any, where there is none among 100. */
export async function freePortFrom(asked: number): Promise<number> {
  if (asked === 0) return 0;
  for (let port = asked; port < asked + TRIES_MAX && port <= 65_535; port++) {
    if (await isFree(port)) return port;
  }
  return 0;
}

/**
 * The port that `flag` means. One that was chosen by its user is taken or refused; a default makes
 * way for the next one that is free, and `say` hears of it. Throws an Error for people.
 */
export async function chosenPort(
  flag: string,
  asked: number,
  isDefault: boolean,
  say: (text: string) => void,
): Promise<number> {
  const found = await freePortFrom(asked);
  if (found === asked) return asked;
  const instead = found === 0 ? 'a free port' : `${found}`;
  if (!isDefault) {
    const why = `cannot listen on 127.0.0.1:${asked}: another process listens there`;
    throw new Error(`${flag}: ${why}; ${flag} ${found} would do`);
  }
  say(`${flag}: port ${asked} is taken, so ${instead} is used; ${flag} names another`);
  return found;
}

/** Can this process listen there? */
export async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  const isListening = await new Promise<boolean>((resolve) => {
    probe.once(
      'error',
      guarded(() => resolve(false)),
    );
    probe.listen(port, '127.0.0.1', () => resolve(true));
  });
  if (isListening) await new Promise((resolve) => probe.close(resolve));
  return isListening;
}
