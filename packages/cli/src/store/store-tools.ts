// shell: the work behind `megaplane store snapshot|import|hash|verify`
import { existsSync, statSync } from 'node:fs';
import { KvHash } from '@megaplane/etcd/hash-kv';
import { type ImportOptions, type Imported, importFile } from '@megaplane/etcd/import-file';
import { databaseOf } from '@megaplane/etcd/etcd-directory';
import { parseEndpoints } from '@megaplane/etcd/client/endpoints';
import { Remote } from '@megaplane/etcd/remote';
import { saveRemote, saveStore, snapshotStatus } from '@megaplane/etcd/snapshot-file';
import { type OpenStore, openStore } from '@megaplane/store/open';
import { type VerifyReport, isSound, repair, verifyDirectory } from '@megaplane/store/verify';
import { Bytes } from '../service/byte-progress.ts';
import { followRemote } from './store-follow.ts';
import { readNamed } from '../flags/named-file.ts';

const EXIT_DONE = 0;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

export interface RemoteFlags {
  readonly endpoints?: string;
  readonly cacert?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly insecureSkipTlsVerify?: true;
  readonly user?: string;
}

interface OutputFlags {
  readonly output?: 'text' | 'json';
}

interface RestoreFlags extends RemoteFlags, OutputFlags {
  readonly dataDir?: string;
  readonly bumpRevision?: number;
  readonly markCompacted?: true;
  readonly skipHashCheck?: true;
  readonly ignoreWal?: true;
  readonly follow?: true;
}

function usage(message: string): number {
  process.stderr.write(`megaplane: ${message}\n`);
  return EXIT_USAGE;
}

/** A row of `name: value` lines, or one JSON object. */
export function print({ output }: OutputFlags, fields: Readonly<Record<string, unknown>>): void {
  if (output === 'json') {
    process.stdout.write(`${JSON.stringify(fields)}\n`);
    return;
  }
  const width = Math.max(...Object.keys(fields).map((name) => name.length));
  for (const [name, value] of Object.entries(fields)) {
    process.stdout.write(`${name.padEnd(width)}  ${String(value)}\n`);
  }
}

export async function remoteOf(flags: RemoteFlags, endpoints: string): Promise<Remote> {
  const [endpoint] = parseEndpoints('--endpoints', endpoints);
  if (endpoint === undefined) throw new Error('--endpoints: no server is named');
  const remote = new Remote(endpoint, {
    ...(flags.cacert === undefined ? {} : { ca: readNamed('--cacert', flags.cacert) }),
    ...(flags.cert === undefined ? {} : { cert: readNamed('--cert', flags.cert) }),
    ...(flags.key === undefined ? {} : { key: readNamed('--key', flags.key) }),
    ...(flags.insecureSkipTlsVerify === true ? { insecure: true } : {}),
  });
  if (flags.user === undefined) return remote;
  const colon = flags.user.indexOf(':');
  if (colon < 0) throw new Error('--user: name:password is needed');
  await remote.login(flags.user.slice(0, colon), flags.user.slice(colon + 1));
  return remote;
}

/** Opens a directory that holds a store already: a mistyped name must not make a new one. */
function openExisting(dataDir: string): OpenStore {
  const names = existsSync(dataDir) && statSync(dataDir).isDirectory();
  if (!names) throw new Error(`--data-dir: there is no directory ${dataDir}`);
  return openStore({ dataDir, durability: 'fsync', prefixes: [] });
}

export async function saveSnapshot(
  file: string,
  flags: RemoteFlags & OutputFlags & { readonly dataDir?: string },
): Promise<number> {
  if ((flags.dataDir === undefined) === (flags.endpoints === undefined)) {
    return usage('store snapshot save: give --endpoints for a server or --data-dir, not both');
  }
  const bytes = new Bytes('snapshot');
  const show = (done: number, total: number): void => bytes.show(done, total);
  let size = 0;
  if (flags.endpoints !== undefined) {
    const remote = await remoteOf(flags, flags.endpoints);
    try {
      size = await saveRemote(remote, file, show);
    } finally {
      remote.close();
    }
  } else {
    const opened = openExisting(flags.dataDir ?? '');
    try {
      size = await saveStore(opened.store, opened.term, file, show);
    } finally {
      await opened.close();
    }
  }
  bytes.finish();
  print(flags, { file, bytes: size });
  return EXIT_DONE;
}

export async function showSnapshot(file: string, flags: OutputFlags): Promise<number> {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) throw new Error(`there is no ${file}`);
  if (found.isDirectory()) throw new Error(`${file} is a directory; name a snapshot file of etcd`);
  const bytes = new Bytes('reading');
  const status = await snapshotStatus(file, (done, total) => bytes.show(done, total));
  bytes.finish();
  const hash = status.hash.toString(16);
  print(flags, flags.output === 'json' ? { ...status } : { ...status, hash });
  return EXIT_DONE;
}

/** `store import` and `store snapshot restore`. */
export async function importSource(source: string, flags: RestoreFlags): Promise<number> {
  const bumpRevision = flags.bumpRevision ?? 0;
  if (bumpRevision > 0 !== (flags.markCompacted === true)) {
    return usage('--bump-revision and --mark-compacted go together: give both or none');
  }
  const isRemote = /^https?:\/\//.test(source);
  const dataDir = flags.dataDir ?? 'default.etcd';
  if (isRemote && bumpRevision > 0) {
    return usage('--bump-revision is for files: a running etcd is followed at its own revisions');
  }
  if (isRemote) {
    const remote = await remoteOf(flags, source);
    try {
      return await followRemote(remote, { dataDir, isFollowing: flags.follow === true }, (fields) =>
        print(flags, fields),
      );
    } finally {
      remote.close();
    }
  }
  if (flags.follow === true) return usage('--follow needs the address of a running etcd');
  const file = databaseOf(source, flags.ignoreWal === true);
  const skipHashCheck = flags.skipHashCheck === true;
  const imported = await importWithProgress({
    ...{ file, dataDir, bumpRevision, skipHashCheck, isSnapshot: file === source },
  });
  print(flags, { ...summary(imported), dataDir });
  return EXIT_DONE;
}

async function importWithProgress(options: Omit<ImportOptions, 'onProgress'>): Promise<Imported> {
  const stages = { checksum: new Bytes('checksum'), records: new Bytes('records') };
  const imported = await importFile({
    ...options,
    onProgress: (stage, done, total) => {
      if (stage === 'records') stages.checksum.finish();
      stages[stage].show(done, total);
    },
  });
  stages.records.finish();
  return imported;
}

function summary({ records, leases, alarms, revision, compactRevision, hasUsers }: Imported) {
  return { revision, compactRevision, records, leases, alarms, users: hasUsers ? 'yes' : 'none' };
}

export async function showHash(
  flags: RemoteFlags & OutputFlags & { readonly dataDir?: string; readonly rev?: number },
): Promise<number> {
  if ((flags.dataDir === undefined) === (flags.endpoints === undefined)) {
    return usage('store hash: give --endpoints for a server or --data-dir, not both');
  }
  const revision = flags.rev ?? 0;
  if (flags.endpoints !== undefined) {
    const remote = await remoteOf(flags, flags.endpoints);
    try {
      const { hash, compactRevision, currentRevision } = await remote.hashKv(revision);
      print(flags, {
        hash,
        revision: revision === 0 ? currentRevision : revision,
        compactRevision,
      });
    } finally {
      remote.close();
    }
    return EXIT_DONE;
  }
  const opened = openExisting(flags.dataDir ?? '');
  try {
    print(flags, hashOf(opened, revision));
    return EXIT_DONE;
  } finally {
    await opened.close();
  }
}

function hashOf({ store }: OpenStore, asked: number): Readonly<Record<string, unknown>> {
  const { appliedRevision, compactRevision } = store;
  const revision = asked === 0 ? appliedRevision : asked;
  if (revision > appliedRevision || revision < compactRevision) {
    throw new Error(
      `--rev ${revision}: the store has revisions from ${Math.max(1, compactRevision)} to ` +
        `${appliedRevision}`,
    );
  }
  const hash = new KvHash(store, revision);
  while (!hash.step());
  return { hash: hash.hash, revision, compactRevision };
}

export async function verifyStore(
  flags: OutputFlags & { readonly dataDir?: string; readonly repair?: true },
): Promise<number> {
  const dataDir = flags.dataDir ?? 'default.etcd';
  const bytes = new Bytes('reading');
  const report = await verifyDirectory(dataDir, (done, total) => bytes.show(done, total));
  bytes.finish();
  if (flags.output === 'json') process.stdout.write(`${JSON.stringify(report)}\n`);
  else printReport(dataDir, report);
  if (isSound(report)) return EXIT_DONE;
  if (flags.repair !== true) {
    process.stderr.write('megaplane: restore a backup, or cut what is damaged with --repair\n');
    return EXIT_FAILED;
  }
  for (const line of repair(dataDir, report)) process.stderr.write(`${line}\n`);
  return report.faults.length > 0 ? EXIT_FAILED : EXIT_DONE;
}

function printReport(dataDir: string, report: VerifyReport): void {
  const lines = report.files.map((file) => {
    const counts = `${file.frames} frames, ${file.records} records, ${file.bytes} bytes`;
    const state = file.isTorn
      ? `torn at byte ${file.badAt}; the next start cuts it`
      : file.fault === ''
        ? 'whole'
        : `DAMAGED at byte ${file.badAt}: ${file.fault}`;
    return `${file.name}  ${counts}, up to revision ${file.lastRevision}: ${state}`;
  });
  const faults = report.faults.map((fault) => `DAMAGED: ${fault}`);
  const verdict = isSound(report) ? 'sound' : 'damaged';
  const { records, lastRevision } = report;
  const total = `${dataDir}: ${verdict}; ${records} records, revision ${lastRevision}`;
  process.stdout.write(`${[...lines, ...faults, total].join('\n')}\n`);
}
