/**
 * Nodes and daemons' pods as columns, joined by the names of nodes.
 *
 *   names      KeyTable   name of a node <-> id
 *   class      Uint32     by id of the name: id of labels and taints + 1, 0 = there is no such node
 *   nameOf     Uint32     by row of the nodes' informer: id of the name
 *   classes    KeyTable   JSON of [labels without the hostname, taints]
 *   target     Uint32     by row of the pods' informer: id of the name of its node + 1
 *   generation Uint32     by the same row: number of its template, 0 = none
 *
 * A million nodes of a kind are one class, which a template is held against once.
 */
import { Uint32Column } from '@megaplane/base/column';
import { KeyTable } from '@megaplane/base/keytable';
import type { Random } from '@megaplane/base/random';
import type { Informer } from '@megaplane/client/informer';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt } from '@megaplane/machinery/json';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import { findPath, MemberCursor, pathOf, skipValue, stringValue } from '@megaplane/machinery/scan';
import { PodRevisions } from '../columns/pod-revisions.ts';
import type { SharedInformers } from '../framework/shared-informers.ts';
import { taintOf } from '../framework/tolerations.ts';
import { GENERATION_LABEL, templateNumber } from './daemon-set.ts';
import type { DaemonNode } from './node-fit.ts';

const HOSTNAME = 'kubernetes.io/hostname';
const HOSTNAME_KEY = Buffer.from(HOSTNAME);
const NO_TAINTS = Buffer.from('[]');
const COMMA = 0x2c;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const TAINTS = pathOf('taints');
const TEMPLATE_GENERATION = pathOf(GENERATION_LABEL);
const AFFINITY = pathOf(
  'affinity',
  'nodeAffinity',
  'requiredDuringSchedulingIgnoredDuringExecution',
);

/** A node, by the id of its name, is new, gone, or of another class; -1 stands for no node. */
export type NodeChanged = (node: number, before: number, after: number) => void;

export class DaemonRows {
  readonly nodes: Informer;
  readonly #names: KeyTable;
  readonly #classes: KeyTable;
  readonly #revisions: PodRevisions;
  readonly #class = new Uint32Column();
  readonly #target = new Uint32Column();
  readonly #generation = new Uint32Column();
  readonly #nameOf = new Uint32Column();
  readonly #labels = new MemberCursor();
  #key: Buffer = Buffer.allocUnsafeSlow(1024);

  constructor(informers: SharedInformers, random: Random, changed: NodeChanged) {
    this.#names = new KeyTable({ random: random.fork('names') });
    this.#classes = new KeyTable({ random: random.fork('classes') });
    this.#revisions = new PodRevisions(random.fork('hashes'));
    this.nodes = informers.subscribe(
      { path: '/api/v1/nodes' },
      {
        onUpsert: (row, isNew, bytes, _start, _end, scan) => {
          if (isNew) this.#nameOf.set(row, this.#nameId(this.nodes.keyOf(row)));
          const id = this.#nameOf.get(row);
          const before = this.classOf(id);
          const after = this.#classOf(bytes as Buffer, scan);
          if (before === after) return;
          this.#class.set(id, after + 1);
          changed(id, before, after);
        },
        onDelete: (row) => {
          const id = this.#nameId(this.nodes.keyOf(row));
          const before = this.classOf(id);
          this.#class.set(id, 0);
          changed(id, before, -1);
        },
      },
    );
  }

  #nameId(name: string): number {
    const key = Buffer.from(name);
    return this.#names.insert(key, 0, key.length);
  }

  #classOf(bytes: Buffer, scan: ObjectScan): number {
    const { labelsStart, labelsEnd, specStart, specEnd } = scan;
    const taints = specStart < 0 ? -1 : findPath(bytes, specStart, specEnd, TAINTS);
    const taintsEnd = taints < 0 ? taints : skipValue(bytes, taints, specEnd);
    const room = labelsEnd - labelsStart + taintsEnd - taints + 16;
    if (room > this.#key.length) this.#key = Buffer.allocUnsafeSlow(2 * room);
    const key = this.#key;
    key[0] = BRACKET_OPEN;
    key[1] = BRACE_OPEN;
    let length = this.#copyLabels(bytes, labelsStart, labelsEnd);
    key[length++] = BRACE_CLOSE;
    key[length++] = COMMA;
    if (taints < 0) length += NO_TAINTS.copy(key, length);
    else length += bytes.copy(key, length, taints, taintsEnd);
    key[length++] = BRACKET_CLOSE;
    return this.#classes.insert(key, 0, length);
  }

  /** Copies all labels but the hostname behind what stands in the key; returns its length. */
  #copyLabels(bytes: Buffer, start: number, end: number): number {
    const key = this.#key;
    const cursor = this.#labels;
    let length = 2;
    if (start < 0 || !cursor.open(bytes, start, end)) return length;
    while (cursor.next()) {
      if (cursor.is(HOSTNAME_KEY)) continue;
      if (length > 2) key[length++] = COMMA;
      length += bytes.copy(key, length, cursor.keyStart - 1, cursor.valueEnd);
    }
    return length;
  }

  /** Takes in a pod that a DaemonSet may own. */
  readPod(row: number, bytes: Buffer, scan: ObjectScan): void {
    let target = 0;
    if (scan.nodeNameEnd > scan.nodeNameStart) {
      target = this.#names.insert(bytes, scan.nodeNameStart, scan.nodeNameEnd) + 1;
    } else if (scan.specStart >= 0) {
      const at = findPath(bytes, scan.specStart, scan.specEnd, AFFINITY);
      const name =
        at < 0 ? '' : targetOf(bytes.toString('utf8', at, skipValue(bytes, at, scan.specEnd)));
      target = name === '' ? 0 : this.#nameId(name) + 1;
    }
    this.#target.set(row, target);
    this.#revisions.read(row, bytes, scan);
    const { labelsStart, labelsEnd } = scan;
    const at = labelsStart < 0 ? -1 : findPath(bytes, labelsStart, labelsEnd, TEMPLATE_GENERATION);
    this.#generation.set(row, templateNumber(stringValue(bytes, at, labelsEnd)));
  }

  /** Number of the template that a pod was made from; 0 for a pod without the label. */
  generationOf(row: number): number {
    return this.#generation.get(row);
  }

  /** Id of the node's name that a pod is on, or meant for; -1 without one. */
  targetOf(row: number): number {
    return this.#target.get(row) - 1;
  }

  /** What the pods' templates are told apart by. */
  get revisions(): PodRevisions {
    return this.#revisions;
  }

  /** All ids of names are below this. */
  get nameEnd(): number {
    return this.#names.idEnd;
  }

  nameOf(id: number): string {
    return this.#names.keyText(id);
  }

  /** Id of the class of a node, or -1 where there is no such node. */
  classOf(id: number): number {
    return this.#class.get(id) - 1;
  }

  /** A node of a class as templates see it. */
  nodeOf(id: number, kind: number): DaemonNode {
    const name = this.nameOf(id);
    const node = this.nodeOfClass(kind);
    return { ...node, name, labels: { [HOSTNAME]: name, ...node.labels } };
  }

  /** Any node of a class, without its name. */
  nodeOfClass(id: number): DaemonNode {
    const [labels, taints] = parseJson(this.#classes.keyText(id)) as [JsonObject, JsonValue[]];
    return { name: '', labels, taints: taints.map(taintOf) };
  }
}

/** The node that a daemon's pod asks for by its affinity; '' where it asks for none. */
function targetOf(affinity: string): string {
  const terms = listAt(parseJson(affinity), 'nodeSelectorTerms');
  for (const term of terms) {
    for (const field of listAt(term, 'matchFields')) {
      const values = listAt(field, 'values');
      const [name] = values;
      if (values.length === 1 && typeof name === 'string') return name;
    }
  }
  return '';
}
