// shell: sockets and timers
/** Asks the other programs of a control plane how they are, at their ports of this machine. */
import { guarded } from '@megaplane/base/deferred';
import { request } from 'node:https';
import { clientTls } from '@megaplane/base/tls-parts';
import { requestText } from '../webhook/dial-text.ts';
import type { HealthProbe } from '../webhook/health-probe.ts';

const HOST = '127.0.0.1';
const PATH = '/healthz';
const TIMEOUT_MS = 20_000;
/** What is kept of an answer, as upstream's prober does. */
const ANSWER_CHARACTERS_MAX: number = 10 * 1024;

/** Whoever listens there is believed: upstream does not look at the certificate either. */
export const probeLocally: HealthProbe = (port, then) => {
  const options = {
    host: HOST,
    port,
    path: PATH,
    ...clientTls({ isInsecure: true }),
    agent: false,
  };
  const asked = request({ ...options, timeout: TIMEOUT_MS }, (response) => {
    let text = '';
    response.setEncoding('utf8');
    response.on(
      'data',
      guarded((chunk: string) => {
        if (text.length < ANSWER_CHARACTERS_MAX) text += chunk;
      }),
    );
    response.on(
      'end',
      guarded(() => {
        const { statusCode = 0 } = response;
        const isWell = statusCode >= 200 && statusCode < 400;
        then(isWell, isWell ? text : `HTTP probe failed with statuscode: ${statusCode}`);
      }),
    );
  });
  asked.on(
    'timeout',
    guarded(() => asked.destroy(new Error('dial timeout'))),
  );
  asked.on(
    'error',
    guarded((error) => {
      const target = { host: HOST, port, path: PATH, isTls: true };
      then(false, requestText('GET', { ...target, peer: 'workload' }, error));
    }),
  );
  asked.end();
};
