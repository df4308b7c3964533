// shell: HTTP to extenders
/** Calls extenders over HTTP, and tells what went wrong in the words of Go's client. */
import { ownMember } from '@megaplane/base/members';
import { readFileSync } from 'node:fs';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { AgentOptions } from 'node:https';
import { clientTls, type ClientTlsParts } from '@megaplane/base/tls-parts';
import { parseGoDuration } from '@megaplane/machinery/times';
import type { ExtenderConfiguration, ExtenderTls } from '../config/configuration.ts';
import type { ExtenderCall } from './extender.ts';
import { readAnswer, type Answer } from './extender-answer.ts';
import { post, type Connection } from './http-post.ts';

const DEFAULT_TIMEOUT_MS = 5000;
const OK = 200;

function timeoutMsOf({ httpTimeout }: ExtenderConfiguration): number {
  const nanos = parseGoDuration(httpTimeout ?? '0') ?? 0n;
  return nanos <= 0n ? DEFAULT_TIMEOUT_MS : Number(nanos / 1_000_000n);
}

function fileOrData(file: string | undefined, data: string | undefined): Buffer | undefined {
  if (data !== undefined && data !== '') return Buffer.from(data, 'base64');
  if (file === undefined || file === '') return undefined;
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Error(goFileText(file, error as NodeJS.ErrnoException), { cause: error });
  }
}

function goFileText(file: string, { code, message }: NodeJS.ErrnoException): string {
  const texts: Readonly<Record<string, string>> = {
    ENOENT: `open ${file}: no such file or directory`,
    EACCES: `open ${file}: permission denied`,
    EISDIR: `read ${file}: is a directory`,
  };
  return ownMember(texts, code ?? '') ?? message;
}

const PEM = '-----BEGIN';

/** TLS as configured. HTTPS without any authority trusts everybody, as upstream has it. */
function tlsOf({ tlsConfig = {}, enableHTTPS }: ExtenderConfiguration): AgentOptions {
  const { caFile = '', caData = '', insecure = false } = tlsConfig;
  const hasAuthority = caFile !== '' || caData !== '';
  if (insecure && hasAuthority) {
    throw new Error('specifying a root certificates file with the insecure flag is not allowed');
  }
  const ca = fileOrData(caFile, caData);
  const isOpen = insecure || (enableHTTPS === true && !hasAuthority);
  if (ca?.includes(PEM) === false) {
    throw new Error('unable to load root certificates: unable to parse bytes as PEM block');
  }
  return {
    ...clientTls({ ca, ...certificateOf(tlsConfig), isInsecure: isOpen }),
    ...(tlsConfig.serverName === undefined ? {} : { servername: tlsConfig.serverName }),
  };
}

/** The client's own; half a one is none. */
function certificateOf(tls: ExtenderTls): Pick<ClientTlsParts, 'cert' | 'key'> {
  const isGiven = (...given: (string | undefined)[]): boolean =>
    given.some((one) => one !== undefined && one !== '');
  if (!isGiven(tls.certFile, tls.certData) || !isGiven(tls.keyFile, tls.keyData)) return {};
  const cert = fileOrData(tls.certFile, tls.certData);
  const key = fileOrData(tls.keyFile, tls.keyData);
  if (cert?.includes(PEM) !== true) {
    throw new Error('tls: failed to find any PEM data in certificate input');
  }
  if (key?.includes(PEM) !== true) throw new Error('tls: failed to find any PEM data in key input');
  return { cert, key };
}

function tlsOrThrow(configuration: ExtenderConfiguration): AgentOptions {
  try {
    return tlsOf(configuration);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(`couldn't build extenders: ${text}`, { cause: error });
  }
}

export class ExtenderCaller {
  readonly #connections = new Map<ExtenderConfiguration, Connection>();

  /** Throws if certificates cannot be read. */
  constructor(configurations: readonly ExtenderConfiguration[]) {
    for (const configuration of configurations) {
      const isSecure = (configuration.urlPrefix ?? '').startsWith('https:');
      const options = { keepAlive: true };
      const tls = tlsOrThrow(configuration);
      const agent = isSecure ? new HttpsAgent({ ...options, ...tls }) : new HttpAgent(options);
      this.#connections.set(configuration, { agent, timeoutMs: timeoutMsOf(configuration) });
    }
  }

  /** Resolves in any case, after the extender's timeout at the latest. */
  async call({ extender, verb, result, body }: ExtenderCall): Promise<Answer> {
    const address = `${extender.url.replace(/\/+$/, '')}/${verb}`;
    if (!URL.canParse(address)) {
      return { ok: false, text: `parse ${JSON.stringify(address)}: invalid URI for request` };
    }
    const connection = this.#connections.get(extender.configuration);
    if (connection === undefined) return { ok: false, text: 'the extender is not configured' };
    const url = new URL(address);
    const { status, bytes, cut, error } = await post(url, JSON.stringify(body), connection);
    if (error !== '') return { ok: false, text: error };
    if (status === OK) return readAnswer(bytes, result, cut);
    const what = `failed ${verb} with extender at URL ${address}`;
    return { ok: false, text: `${what}, code ${status}` };
  }

  close(): void {
    for (const { agent } of this.#connections.values()) agent.destroy();
  }
}
