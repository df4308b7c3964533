/**
 * DELETE of a collection. It goes through the list at one revision, some objects a turn, and
 * answers that list (as upstream does, which tells nothing of what became of its items).
 *
 * Nothing of the list is kept meanwhile: a hundred thousand pods are half a gigabyte, and a client
 * that does not read its answer would hold them for as long as it likes. The answer is read from
 * history, as the client takes it, which is held as long as that (within the storage's bounds).
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  expired,
  tooLargeResourceVersion,
  type Result,
  type Status,
} from '@megaplane/machinery/status';
import { continueAfter, startOfPage } from '../request/options/continue-token.ts';
import type { ListMeta } from '../serializer/encoder.ts';
import type { Filter } from '../request/filter.ts';
import { isUncached, type ListOptions } from '../request/options/list-options.ts';
import { ROWS_PER_TURN_MAX } from '../serializer/list-stream.ts';
import { NOWHERE } from '../request/place-check.ts';
import { holdRows, sendListAt } from './reading.ts';
import { removeOne, warnOfDefault } from './removing.ts';
import { selectOf } from '../serializer/representation.ts';
import { filterOf } from '../request/options/selection.ts';
import { keyAfter, type KeyRange } from '../storage/served.ts';
import type { WriteContext } from './writing.ts';
import type { DeleteOptions } from '../request/options/delete-options.ts';

/** Objects that are removed before others get their turn. */
const DELETIONS_PER_TURN = 100;

/** What is answered where history was cut before its list could be. */
const REMOVED: JsonObject = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' };

/** Answers DELETE of a collection: the list of what was deleted, at its revision. */
export function deleteCollection(
  context: WriteContext,
  options: DeleteOptions,
  list: ListOptions,
): void {
  const { call, served, world } = context;
  const filter = filterOf(served, list);
  if (!filter.ok) {
    call.fail(filter.status);
    return;
  }
  warnOfDefault(context, options);
  const range = selectOf(served, call.info, filter.value, list.token !== null);
  const start = startOfPage(range, list.token);
  // upstream goes through its list in pages, which a revision then means exactly
  const asked = filter.value.name === '' ? Math.max(0, list.token?.revision ?? list.revision) : 0;
  const { appliedRevision } = world.storage;
  if (asked > appliedRevision) {
    call.fail(tooLargeResourceVersion(asked, appliedRevision, isUncached(served)));
    return;
  }
  const revision = asked || appliedRevision;
  // what is removed is history, which is read until all of it was answered
  call.exchange.onClose = () => call.done();
  holdRows(world, call, { start, end: range.end }, revision);
  new CollectionRemoval(context, options, list.limit, filter.value, range, start, revision).step();
}

interface Place {
  readonly namespace: string;
  readonly name: string;
}

const NO_PLACE: Place = { namespace: '', name: '' };

class CollectionRemoval {
  readonly #context: WriteContext;
  readonly #options: DeleteOptions;
  readonly #limit: number;
  readonly #filter: Filter;
  readonly #range: KeyRange;
  readonly #start: Buffer;
  readonly #revision: number;
  /** The next key to look at; null: all are through. */
  #next: Buffer | null;
  #count = 0;
  #turns = 0;
  /** Objects that are being removed. */
  #open = 0;
  #isAllBegun = false;
  /** Key of the last object of the page, where there are others behind it. */
  #cut: Buffer | null = null;
  #refusal: Status | null = null;

  constructor(
    context: WriteContext,
    options: DeleteOptions,
    limit: number,
    filter: Filter,
    range: KeyRange,
    start: Buffer,
    revision: number,
  ) {
    this.#context = context;
    this.#options = options;
    this.#limit = limit;
    this.#filter = filter;
    this.#range = range;
    this.#start = start;
    this.#next = start;
    this.#revision = revision;
  }

  /** Removes the next objects, then those behind them in later turns; answers at the end. */
  step(): void {
    const { call } = this.#context;
    if (call.exchange.closed) return;
    const places = this.#nextPlaces();
    // upstream finds objects of all namespaces there, and none of them by its key
    const isNowhere = call.info.isInside && call.info.namespace === '';
    if (isNowhere && places.length > 0) this.#refusal ??= NOWHERE;
    if (this.#refusal !== null) {
      call.fail(this.#refusal);
      return;
    }
    this.#turns++;
    this.#removeFrom(places, 0);
  }

  /**
   * Upstream removes one after the other, until one is refused. Here the next is begun as soon as
   * nothing can refuse the one before it: while somebody else is asked about one, all others wait.
   */
  #removeFrom(places: readonly Place[], from: number): void {
    for (let at = from; at < places.length && this.#refusal === null; at++) {
      const { namespace, name } = places[at] ?? NO_PLACE;
      let isSure = false;
      let isHolding = false;
      this.#open++;
      const done = (result: Result<unknown>): void => {
        isSure = true;
        this.#open--;
        if (!result.ok && result.status.code !== 404) this.#refusal ??= result.status;
        if (isHolding) this.#removeFrom(places, at + 1);
        else if (this.#isAllBegun && this.#open === 0) this.#settle();
      };
      const judged = (): void => {
        isSure = true;
      };
      this.#isAllBegun = false;
      removeOne(this.#context, namespace, name, this.#options, done, judged);
      if (!isSure) {
        isHolding = true;
        return;
      }
    }
    this.#isAllBegun = true;
    if (this.#open === 0) this.#settle();
  }

  #settle(): void {
    const { call, world } = this.#context;
    const { edge, storage } = world;
    if (this.#refusal !== null) call.fail(this.#refusal);
    else if (this.#next !== null) edge.defer(() => this.step());
    else if (this.#turns === 1) this.#answer();
    // in a later turn nobody holds the answer back for what it speaks of
    else world.whenPublished(storage.appliedRevision, () => this.#answer());
  }

  #nextPlaces(): Place[] {
    const { served, world } = this.#context;
    const { namespaced } = served.resource;
    const places: Place[] = [];
    let rows = 0;
    let last: Buffer = this.#start;
    const from = this.#next ?? this.#range.end;
    const outcome = world.storage.page(from, this.#range.end, this.#revision, (one) => {
      if (this.#limit > 0 && this.#count === this.#limit) {
        this.#cut = last;
        return false;
      }
      rows++;
      last = Buffer.from(one.key.subarray(one.keyStart, one.keyEnd));
      this.#next = keyAfter(last);
      if (this.#filter.matches(one)) {
        this.#count++;
        const path = last.toString('utf8', served.prefix.length);
        const slash = namespaced ? path.indexOf('/') : -1;
        places.push({ namespace: path.slice(0, Math.max(0, slash)), name: path.slice(slash + 1) });
      }
      return places.length < DELETIONS_PER_TURN && rows < ROWS_PER_TURN_MAX;
    });
    if (outcome === 'compacted') this.#refusal = expired();
    if (outcome !== 'stopped' || this.#cut !== null) this.#next = null;
    return places;
  }

  #answer(): void {
    const { call, served, world } = this.#context;
    const { storage } = world;
    const end = this.#cut === null ? this.#range.end : keyAfter(this.#cut);
    const range = { start: this.#start, end };
    if (this.#revision < storage.oldestRevision(range.start, range.end)) {
      call.sendObject(200, REMOVED);
      return;
    }
    const filter = this.#filter;
    sendListAt(world, call, served, { range, filter, meta: this.#meta() });
  }

  #meta(): ListMeta {
    const { served, world } = this.#context;
    const filter = this.#filter;
    const { end } = this.#range;
    const shard = served.custom === null ? (filter.shard?.text ?? '') : '';
    const meta = { revision: this.#revision, remaining: null, shard, unchanged: null };
    if (this.#cut === null) return { ...meta, continueToken: '' };
    const continueToken = continueAfter(this.#range, this.#cut, this.#revision);
    if (!filter.isUnselected) return { ...meta, continueToken };
    const remaining = world.storage.count(keyAfter(this.#cut), end);
    return { ...meta, continueToken, remaining };
  }
}
