/**
 * OpenAPI documents, each built when it is first asked for, in slices between which others have
 * their turn, and kept as bytes. The hash of a document is that of what it is made from (release,
 * definitions), which changes when it would, so that an index costs no building.
 */
import { putMember } from '@megaplane/base/members';
import { createHash } from 'node:crypto';
import { groups } from '@megaplane/machinery/kinds';
import type { RemoteService } from '../aggregator/remote-service.ts';
import type { RemoteServices } from '../aggregator/remote-services.ts';
import type { Kinds } from '../apiextensions/schema/kind-registry.ts';
import { LOOKUP_NAMES } from './openapi-discovery.ts';
import { VERSION_2, VERSION_3 } from './openapi-schemas.ts';
import {
  builtinParts,
  customParts,
  metadataPart,
  sourceOf,
  version2Protobuf,
  version2Text,
  version3Protobuf,
  version3Text,
  type OldPieces,
  type Part,
  type Piece,
} from './openapi-pieces.ts';
import { GIT_VERSION } from '../release.ts';
import { isGroupServed } from '../storage/served.ts';
import type { Edge } from '../lister/world.ts';

/** A document is built for so long before others get their turn. */
const SLICE_MS = 8;
/** Bytes of documents that stay; the least recently used go first, the newest always stays. */
const KEPT_BYTES_MAX: number = 32 * 1024 * 1024;
/** Pieces of a document are joined to chunks of at least this size. */
const CHUNK_BYTES: number = 256 * 1024;

/** A built document. */
export interface OpenApiDocument {
  readonly hash: string;
  readonly chunks: readonly Buffer[];
  readonly bytes: number;
  /** Where pieces of it lie that the next one may have, too. */
  readonly ranges: ReadonlyMap<string, Range>;
}

/** Place of a piece: within one chunk. */
interface Range {
  readonly chunk: number;
  readonly start: number;
  readonly end: number;
}

/** Which documents of version 3 there are. */
export interface OpenApiIndex {
  readonly text: string;
  readonly hash: string;
}

/** How a document is written. */
export type OpenApiForm = 'json' | 'protobuf';

type Done = (document: OpenApiDocument) => void;

/** See the head of the file. One for a server. */
export class OpenApiDocuments {
  readonly #kinds: Kinds;
  readonly #edge: Pick<Edge, 'nowMs' | 'defer'>;
  readonly #remotes: Pick<RemoteServices, 'all'>;
  /** By name; the least recently used comes first. */
  readonly #kept = new Map<string, OpenApiDocument>();
  #keptBytes = 0;
  /** Documents on their way, by name and hash. */
  readonly #building = new Map<string, Done[]>();
  #hashes = new Map<string, string>();
  #index: OpenApiIndex | null = null;

  constructor(
    kinds: Kinds,
    edge: Pick<Edge, 'nowMs' | 'defer'>,
    remotes: Pick<RemoteServices, 'all' | 'onChange'>,
  ) {
    this.#kinds = kinds;
    this.#edge = edge;
    this.#remotes = remotes;
    kinds.onChange((group) => this.#forget(group));
    remotes.onChange((group) => this.#forget(group));
  }

  /** What a change of the group's kinds may have changed. */
  #forget(group: string): void {
    this.#index = null;
    for (const name of [...this.#hashes.keys()]) {
      if (name === 'v2' || name.startsWith(`apis/${group}/`)) this.#hashes.delete(name);
    }
  }

  /** `/openapi/v3`. */
  get index(): OpenApiIndex {
    this.#kinds.catchUp();
    if (this.#index === null) {
      const text = JSON.stringify({ paths: this.#paths() });
      this.#index = { text, hash: hexOf(text) };
    }
    return this.#index;
  }

  #paths(): Record<string, { serverRelativeURL: string }> {
    const paths: Record<string, { serverRelativeURL: string }> = {};
    for (const name of this.#names()) {
      putMember(paths, name, {
        serverRelativeURL: `/openapi/v3/${name}?hash=${this.hashOf(name)}`,
      });
    }
    for (const { publications } of this.#remotes.all()) {
      for (const [name, hash] of publications.version3) {
        putMember(paths, name, { serverRelativeURL: `/openapi/v3/${name}?hash=${hash}` });
      }
    }
    return paths;
  }

  #names(): string[] {
    const names = [...BUILTIN_NAMES.value];
    for (const group of this.#kinds.customGroups()) {
      for (const version of this.#kinds.versionsOf(group)) names.push(`apis/${group}/${version}`);
    }
    return names.sort();
  }

  /** True where there is such a document of version 3. */
  has(name: string): boolean {
    if (BUILTIN_NAMES.value.has(name)) return true;
    const place = placeOf(name);
    if (place === null) return false;
    this.#kinds.catchUp();
    return this.#kinds.versionsOf(place.group).includes(place.version);
  }

  /** Of a document that may not be built yet, in either form; `v2` is a document, too. */
  hashOf(name: string): string {
    let hash = this.#hashes.get(name);
    if (hash === undefined) {
      hash = hexOf(`${GIT_VERSION} ${name}${this.#sources(name)}`);
      this.#hashes.set(name, hash);
    }
    return hash;
  }

  /** What the definitions in a document are. */
  #sources(name: string): string {
    if (name === 'v2') {
      const groupsOf = this.#kinds.customGroups();
      const custom = groupsOf.map((group) => this.#kinds.kindsOf(group).map(sourceOf).join(''));
      const remote = Array.from(this.#remotes.all(), remoteSourceOf);
      return [...custom, ...remote].join('');
    }
    const place = placeOf(name);
    if (place === null || isGroupServed(place.group, place.version)) return '';
    const kinds = this.#kinds.kindsOf(place.group);
    return kinds
      .filter((kind) => kind.serves(place.version))
      .map(sourceOf)
      .join('');
  }

  /** Calls `done` with the document, at once where it is there. */
  whenBuilt(document: string, form: OpenApiForm, done: Done): void {
    const hash = this.hashOf(document);
    const name = `${form} ${document}`;
    const kept = this.#kept.get(name);
    if (kept?.hash === hash) {
      this.#kept.delete(name);
      this.#kept.set(name, kept);
      done(kept);
      return;
    }
    const key = `${name} ${hash}`;
    const waiting = this.#building.get(key);
    if (waiting !== undefined) {
      waiting.push(done);
      return;
    }
    this.#building.set(key, [done]);
    const old = (piece: string): Buffer | undefined => pieceOf(kept, piece);
    const pieces = this.#pieces(document, form, old)[Symbol.iterator]();
    this.#build(name, hash, pieces, new Chunks());
  }

  #build(name: string, hash: string, pieces: Iterator<Piece>, chunks: Chunks): void {
    const untilMs = this.#edge.nowMs() + SLICE_MS;
    for (;;) {
      const next = pieces.next();
      if (next.done === true) break;
      chunks.add(next.value);
      if (this.#edge.nowMs() < untilMs) continue;
      this.#edge.defer(() => this.#build(name, hash, pieces, chunks));
      return;
    }
    const { bytes, ranges } = chunks;
    const document = { hash, chunks: chunks.end(), bytes, ranges };
    this.#keep(name, document);
    const key = `${name} ${hash}`;
    const waiting = this.#building.get(key) ?? [];
    this.#building.delete(key);
    for (const done of waiting) done(document);
  }

  #keep(name: string, document: OpenApiDocument): void {
    this.#keptBytes -= this.#kept.get(name)?.bytes ?? 0;
    this.#kept.delete(name);
    this.#kept.set(name, document);
    this.#keptBytes += document.bytes;
    for (const [oldest, { bytes }] of this.#kept) {
      if (this.#keptBytes <= KEPT_BYTES_MAX || this.#kept.size === 1) return;
      this.#kept.delete(oldest);
      this.#keptBytes -= bytes;
    }
  }

  #pieces(name: string, form: OpenApiForm, old: OldPieces): Iterable<Piece> {
    const kinds = this.#kinds;
    if (name === 'v2') {
      const remotes = [...this.#remotes.all()];
      const parts = function* (): Iterable<Part> {
        yield* builtinParts('v2', VERSION_2);
        yield* customParts(kinds, null, VERSION_2);
        for (const remote of remotes) yield* remoteParts(remote);
      };
      return form === 'json' ? version2Text(parts, old) : version2Protobuf(parts, old);
    }
    const written = form === 'json' ? version3Text : version3Protobuf;
    const place = placeOf(name);
    if (place === null || isGroupServed(place.group, place.version)) {
      return written(() => builtinParts(name, VERSION_3));
    }
    const parts = function* (): Iterable<Part> {
      yield metadataPart(VERSION_3);
      yield* customParts(kinds, place, VERSION_3);
    };
    return written(parts, true);
  }
}

/** Joins small pieces, so that a document is no list of ten thousand buffers. */
class Chunks {
  readonly #chunks: Buffer[] = [];
  #open: Buffer[] = [];
  #openBytes = 0;
  bytes = 0;
  readonly ranges = new Map<string, Range>();

  add(piece: Piece): void {
    const isPlain = typeof piece === 'string' || Buffer.isBuffer(piece);
    const content = isPlain ? piece : piece.content;
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    if (!isPlain) {
      const start = this.#openBytes;
      const range = { chunk: this.#chunks.length, start, end: start + bytes.length };
      this.ranges.set(piece.key, range);
    }
    if (bytes.length === 0) return;
    this.#open.push(bytes);
    this.#openBytes += bytes.length;
    this.bytes += bytes.length;
    if (this.#openBytes >= CHUNK_BYTES) this.#close();
  }

  #close(): void {
    this.#chunks.push(Buffer.concat(this.#open));
    this.#open = [];
    this.#openBytes = 0;
  }

  end(): readonly Buffer[] {
    if (this.#openBytes > 0) this.#close();
    return this.#chunks;
  }
}

function pieceOf(document: OpenApiDocument | undefined, key: string): Buffer | undefined {
  const range = document?.ranges.get(key);
  if (range === undefined) return undefined;
  return document?.chunks[range.chunk]?.subarray(range.start, range.end);
}

function remoteSourceOf({ spec, publications }: RemoteService): string {
  const { version2Tag } = publications;
  return version2Tag === '' ? '' : ` ${spec.group}/${spec.version}/${version2Tag}`;
}

/** What another server adds to the document of version 2: of names, whoever came first has them. */
function remoteParts({ publications }: RemoteService): Part[] {
  const part = publications.version2;
  return part === null ? [] : [{ paths: () => part.paths, schemas: () => part.definitions }];
}

/** Group and version of `apis/{group}/{version}`; null for other names. */
function placeOf(name: string): { readonly group: string; readonly version: string } | null {
  const [first, group, version, more] = name.split('/');
  if (first !== 'apis' || group === undefined || version === undefined) return null;
  return more === undefined ? { group, version } : null;
}

/** Names of the documents that every server has; found out when first needed. */
const BUILTIN_NAMES = {
  found: null as ReadonlySet<string> | null,
  get value(): ReadonlySet<string> {
    return (this.found ??= findBuiltinNames());
  },
};

function findBuiltinNames(): ReadonlySet<string> {
  const names = new Set(LOOKUP_NAMES);
  for (const group of groups()) {
    if (group.name !== '') names.add(`apis/${group.name}`);
    for (const { version } of group.versions) {
      names.add(group.name === '' ? `api/${version}` : `apis/${group.name}/${version}`);
    }
  }
  return names;
}

/** SHA-512 as hashes of documents are written. */
export function hexOf(text: string): string {
  return createHash('sha512').update(text).digest('hex').toUpperCase();
}
