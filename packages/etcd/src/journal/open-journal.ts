// shell: opens the journal that a URL names
import { parseByteSize } from '@megaplane/base/limits';
import type { Journal } from '@megaplane/store/journal';
import type { ConnectTls } from '@megaplane/wire/connect';
import { readFileSync } from 'node:fs';
import { parseEndpoints } from '../client/endpoints.ts';
import { EtcdJournal } from './etcd-journal.ts';
import { NatsJournal } from './nats-journal.ts';

export interface JournalAccess {
  /** Files of PEM. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** NATS: files of credentials, or of the seed of an nkey. */
  readonly credentials?: string;
  readonly nkey?: string;
}

/** The same as flags name them. */
export interface JournalAccessFlags {
  readonly journal?: string;
  readonly journalCacert?: string;
  readonly journalCert?: string;
  readonly journalKey?: string;
  readonly journalCredentials?: string;
  readonly journalNkey?: string;
}

export function journalAccess(flags: JournalAccessFlags): JournalAccess {
  const { journalCacert, journalCert, journalKey, journalCredentials, journalNkey } = flags;
  return {
    ...(journalCacert === undefined ? {} : { ca: journalCacert }),
    ...(journalCert === undefined ? {} : { cert: journalCert }),
    ...(journalKey === undefined ? {} : { key: journalKey }),
    ...(journalCredentials === undefined ? {} : { credentials: journalCredentials }),
    ...(journalNkey === undefined ? {} : { nkey: journalNkey }),
  };
}

/** Of etcd's keys and of NATS's streams: what both take. */
const NAME = /^[\w.-]{1,128}$/;
const EXAMPLES = 'nats://10.0.0.1:4222,10.0.0.2:4222/NAME or etcd://10.0.0.1:2379/NAME';

interface Asked {
  readonly scheme: string;
  readonly user: string;
  readonly password: string;
  readonly servers: readonly string[];
  readonly name: string;
  readonly options: ReadonlyMap<string, string>;
}

/** Takes `--journal` apart. Throws with what is wrong with it. */
export function parseJournalUrl(text: string): Asked {
  const match = /^([a-z]+):\/\/(?:([^@/]*)@)?([^/?@]+)\/([^?/]+)(?:\?(.*))?$/.exec(text);
  if (match === null) throw new Error(`--journal: ${hidden(text)} is no URL such as ${EXAMPLES}`);
  const [, scheme = '', userinfo = '', hosts = '', name = '', query = ''] = match;
  if (!['nats', 'tls', 'etcd', 'etcds'].includes(scheme)) {
    throw new Error(`--journal: ${scheme}:// is not known; use ${EXAMPLES}`);
  }
  if (!NAME.test(name) || (scheme !== 'etcd' && scheme !== 'etcds' && name.includes('.'))) {
    throw new Error(`--journal: ${name} is no name; letters, digits, _ and - are`);
  }
  const [user = '', password = ''] = userinfo.split(':').map((part) => decodeURIComponent(part));
  const options = new Map<string, string>();
  for (const [key, value] of new URLSearchParams(query)) options.set(key, value);
  return { scheme, user, password, servers: hosts.split(','), name, options };
}

/** Without a password. */
function hidden(text: string): string {
  return text.replace(/\/\/[^@/]*@/, '//***@');
}

function only(options: ReadonlyMap<string, string>, known: readonly string[]): void {
  for (const key of options.keys()) {
    if (known.includes(key)) continue;
    throw new Error(`--journal: ${key}= is not known; ${known.join(', ')} are`);
  }
}

/**
 * Opens a journal; what cannot be used is refused with what to do. `log` is told of connections
 * that come and go.
 */
export async function openJournal(
  url: string,
  access: JournalAccess,
  log: (message: string) => void,
): Promise<Journal> {
  const asked = parseJournalUrl(url);
  if (asked.scheme === 'etcd' || asked.scheme === 'etcds') return openEtcd(asked, access, log);
  return await openNats(asked, access, log);
}

function fileOf(flag: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`${flag}: cannot be read (${(error as Error).message})`, { cause: error });
  }
}

function openEtcd(asked: Asked, access: JournalAccess, log: (message: string) => void): Journal {
  only(asked.options, ['compact']);
  if (asked.user !== '')
    throw new Error('--journal: etcd takes certificates, not a user and password');
  const protocol = asked.scheme === 'etcds' ? 'https' : 'http';
  const list = asked.servers.map((server) => `${protocol}://${server}`).join();
  const { ca, cert, key } = access;
  const tls = (): ConnectTls => ({
    ...(ca === undefined ? {} : { ca: fileOf('--journal-cacert', ca) }),
    ...(cert === undefined ? {} : { cert: fileOf('--journal-cert', cert) }),
    ...(key === undefined ? {} : { key: fileOf('--journal-key', key) }),
  });
  if (protocol === 'https') tls();
  return new EtcdJournal({
    endpoints: parseEndpoints('--journal', list),
    tls: () => (protocol === 'https' ? tls() : null),
    log,
    path: `megaplane/journal/${asked.name}`,
    compacts: asked.options.get('compact') !== 'false',
  });
}

function filesOf({ ca, cert, key, credentials, nkey }: JournalAccess): [string, string][] {
  const all: [string, string | undefined][] = [
    ['--journal-cacert', ca],
    ['--journal-cert', cert],
    ['--journal-key', key],
    ['--journal-credentials', credentials],
    ['--journal-nkey', nkey],
  ];
  return all.filter((one): one is [string, string] => one[1] !== undefined);
}

async function openNats(
  asked: Asked,
  access: JournalAccess,
  log: (message: string) => void,
): Promise<Journal> {
  only(asked.options, ['replicas', 'storage', 'max-bytes']);
  const replicas = Number(asked.options.get('replicas') ?? 1);
  if (![1, 2, 3, 4, 5].includes(replicas)) throw new Error('--journal: replicas= is 1 to 5');
  const storage = asked.options.get('storage') ?? 'file';
  for (const [flag, path] of filesOf(access)) fileOf(flag, path);
  if (storage !== 'file' && storage !== 'memory') {
    throw new Error('--journal: storage= is file or memory');
  }
  const bytesMax = asked.options.get('max-bytes');
  const isTls = asked.scheme === 'tls' || access.ca !== undefined || access.cert !== undefined;
  try {
    return await NatsJournal.open({
      servers: asked.servers,
      stream: asked.name,
      replicas,
      storage,
      bytesMax: bytesMax === undefined ? Infinity : sizeOf(bytesMax),
      ...(asked.user === '' ? {} : { user: asked.user, password: asked.password }),
      ...(access.credentials === undefined ? {} : { credentialsFile: access.credentials }),
      ...(access.nkey === undefined ? {} : { nkeyFile: access.nkey }),
      tls: isTls ? access : null,
      log,
    });
  } catch (error) {
    const what = (error as Error).message || 'no answer';
    throw new Error(`--journal: ${asked.servers.join()}: ${what}`, { cause: error });
  }
}

function sizeOf(text: string): number {
  const size = parseByteSize(text);
  if (size.kind === 'invalid') throw new Error(`--journal: max-bytes=: ${size.message}`);
  return size.value;
}
