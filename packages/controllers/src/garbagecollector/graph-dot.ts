/**
 * The graph of the garbage collector for people, as upstream's dump.go writes it in Graphviz'
 * language. Only what owns or is owned is in it. Piece by piece: it can have millions of nodes.
 */
import { FOREGROUND, type GarbageGraph } from './garbage-graph.ts';

/** A kind of objects, numbered as in the graph. */
export interface DumpedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Rows are below it. */
  readonly rowEnd: number;
  nameOf(row: number): readonly [namespace: string, name: string];
}

interface Vertex {
  readonly uid: string;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly isMissing: boolean;
  readonly flags: number;
}

type Place = readonly [resource: number, row: number];

/** The whole graph, or what hangs together with some uids. */
export function* dumpGraph(
  graph: GarbageGraph,
  kinds: readonly DumpedKind[],
  uids: readonly string[],
): Generator<string> {
  yield 'strict digraph full {\n';
  const places = (): Iterable<Place> =>
    uids.length === 0 ? allPlaces(graph, kinds) : connected(graph, kinds, uids);
  let head = '  // Node definitions.\n';
  const missing: Set<string> = new Set();
  for (const [resource, row] of places()) {
    yield head + vertexText(vertexAt(graph, kinds, resource, row));
    head = '';
    for (const owner of graph.ownersOf(resource, row)) {
      if (owner.place !== undefined || missing.has(owner.uid)) continue;
      missing.add(owner.uid);
      const unknown = { group: '', version: '', kind: '', namespace: '', name: '', flags: 0 };
      yield vertexText({ ...unknown, uid: owner.uid, isMissing: true });
    }
  }
  head = '  // Edge definitions.\n';
  for (const [resource, row] of places()) {
    const uid = graph.uidOf(resource, row);
    for (const owner of graph.ownersOf(resource, row)) {
      yield `${head}  ${JSON.stringify(uid)} -> ${JSON.stringify(owner.uid)};\n`;
      head = '';
    }
  }
  yield '}\n';
}

function* allPlaces(graph: GarbageGraph, kinds: readonly DumpedKind[]): Generator<Place> {
  for (const [resource, { rowEnd }] of kinds.entries()) {
    for (let row = 0; row < rowEnd; row++) {
      if (graph.isLinked(resource, row)) yield [resource, row];
    }
  }
}

function connected(
  graph: GarbageGraph,
  kinds: readonly DumpedKind[],
  uids: readonly string[],
): Place[] {
  const found: Map<string, Place> = new Map();
  const waiting: Place[] = uids.flatMap((uid) =>
    kinds.flatMap(({ rowEnd }, resource) => {
      const row = graph.findUid(resource, uid, rowEnd);
      return row < 0 ? [] : [[resource, row] as const];
    }),
  );
  for (let at = 0; at < waiting.length; at++) {
    const place = waiting[at];
    if (place === undefined || found.has(place.join(' '))) continue;
    if (graph.isLinked(...place)) found.set(place.join(' '), place);
    for (const owner of graph.ownersOf(...place)) {
      if (owner.place !== undefined) waiting.push(owner.place);
    }
    graph.dependents(...place, (resource, row) => void waiting.push([resource, row]));
  }
  return [...found.values()];
}

function vertexAt(
  graph: GarbageGraph,
  kinds: readonly DumpedKind[],
  resource: number,
  row: number,
): Vertex {
  const { group = '', version = '', kind = '' } = kinds[resource] ?? {};
  const [namespace = '', name = ''] = kinds[resource]?.nameOf(row) ?? [];
  const flags = graph.flagsOf(resource, row);
  const uid = graph.uidOf(resource, row);
  return { uid, group, version, kind, namespace, name, flags, isMissing: false };
}

function vertexText(vertex: Vertex): string {
  const { uid, group, version, kind, namespace, name, isMissing, flags } = vertex;
  const called = `${kind}.${version}${group === '' ? '' : `.${group}`}/${name}`;
  const states = {
    beingDeleted: flags !== 0,
    deletingDependents: (flags & FOREGROUND) !== 0,
    virtual: false,
    missingFromGraph: isMissing,
  };
  const told = Object.entries(states).filter(([, isSo]) => isSo);
  const state = told.length === 0 ? '' : `${told.map(([text]) => text).join(',')}\n`;
  const attributes = {
    label: `uid=${uid}\nnamespace=${namespace}\n${called}\n${state}`,
    ...{ group, version, kind, namespace, name, uid },
    missing: String(isMissing),
    beingDeleted: String(states.beingDeleted),
    deletingDependents: String(states.deletingDependents),
    virtual: 'false',
  };
  const lines = Object.entries(attributes).map(
    ([key, value]) => `    ${key}=${JSON.stringify(value)}\n`,
  );
  return `  ${JSON.stringify(uid)} [\n${lines.join('')}  ];\n`;
}
