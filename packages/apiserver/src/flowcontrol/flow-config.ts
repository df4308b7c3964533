/**
 * The flow schemas and priority levels in force, as the stored objects say, and the condition
 * `Dangling` of schemas, which tells whether their level exists.
 */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import type { Call } from '../request/call.ts';
import { decodeRow } from '../serializer/encoder.ts';
import { followChanges } from '../storage/follow.ts';
import type { Identity } from '../request/identity.ts';
import { trackAppliedStatus } from '../fieldmanager/tracking.ts';
import type { RequestInfo } from '../request/request-info.ts';
import { findServed, keyOf, rangeOf, type Served } from '../storage/served.ts';
import type { World } from '../lister/world.ts';
import { FlowSeries } from './flow-metrics.ts';
import { GROUP, standardObjects } from './flow-objects.ts';
import { distinguish, FlowTable, readFlowSchema, type FlowSchema } from './flow-table.ts';
import type { Held, Route } from './held-request.ts';
import { Levels } from './levels.ts';
import { readLevel } from './priority-level.ts';
import { timestamp } from '../timestamp.ts';

/** What upstream's fairness applies the conditions of schemas as. */
const CONFIG_MANAGER = 'api-priority-and-fairness-config-consumer-v1';
const CATCH_ALL = 'catch-all';

interface Stored {
  readonly object: JsonObject;
  readonly revision: number;
}

export class FlowConfig {
  readonly levels: Levels<Held>;
  readonly #world: World;
  readonly #clockMs: () => number;
  readonly #series = new Map<string, FlowSeries>();
  #routes = new Map<FlowSchema, Route>();
  #table: FlowTable;
  #isStale = true;
  #isFollowed = false;

  readonly #onChange: () => void;

  /** `onChange`: levels may have more seats than before. */
  constructor(world: World, serverSeats: number, clockMs: () => number, onChange: () => void) {
    this.#onChange = onChange;
    this.#world = world;
    this.#clockMs = clockMs;
    this.levels = new Levels<Held>(serverSeats, clockMs());
    this.#table = this.#build([], []);
  }

  /** Another object whenever the configuration has changed. */
  generation(): object {
    if (this.#isStale) this.#read();
    return this.#table;
  }

  /** Where a request goes; `verb` as authorizers see it. */
  routeOf(identity: Identity, info: RequestInfo, verb: string): Route {
    if (this.#isStale) this.#read();
    return this.#routeTo(this.#table.match(identity, info, verb));
  }

  /** What tells the flow of a call from others of its schema. */
  distinguish(schema: FlowSchema, { identity, info }: Pick<Call, 'identity' | 'info'>): string {
    return distinguish(schema, identity, info.namespace);
  }

  allSeries(): FlowSeries[] {
    return Array.from(this.#series.values());
  }

  #routeTo(schema: FlowSchema): Route {
    let route = this.#routes.get(schema);
    if (route !== undefined) return route;
    const level = this.levels.find(schema.level) ?? this.levels.find(CATCH_ALL);
    if (level === undefined) throw new Error('the priority level catch-all is always there');
    const series = this.#seriesOf(level.name, schema.name);
    const fields = [
      'x-kubernetes-pf-flowschema-uid',
      schema.uid,
      'x-kubernetes-pf-prioritylevel-uid',
      level.config.uid,
    ];
    route = { schema, level, series, fields };
    this.#routes.set(schema, route);
    return route;
  }

  #seriesOf(level: string, schema: string): FlowSeries {
    const key = `${level}\0${schema}`;
    let series = this.#series.get(key);
    if (series === undefined) this.#series.set(key, (series = new FlowSeries(level, schema)));
    return series;
  }

  #read(): void {
    this.#isStale = false;
    const levels = this.#stored('prioritylevelconfigurations');
    const schemas = this.#stored('flowschemas');
    if (!this.#isFollowed) {
      this.#isFollowed = true;
      for (const plural of ['prioritylevelconfigurations', 'flowschemas']) this.#follow(plural);
    }
    this.#table = this.#build(
      levels.map(({ object }) => object),
      schemas.map(({ object }) => object),
    );
    const names = new Set(levels.map(({ object }) => stringAt(object, 'metadata', 'name')));
    for (const schema of schemas) this.#tellDangling(schema, names);
    this.#onChange();
  }

  #follow(plural: string): void {
    const served = findServed(GROUP, 'v1', plural);
    if (served === undefined) return;
    followChanges(this.#world.at(served).storage, rangeOf(served, ''), () => {
      if (this.#isStale) return;
      this.#isStale = true;
      // conditions are told even where no request asks
      this.#world.edge.defer(() => this.generation());
    });
  }

  #stored(plural: string): Stored[] {
    const served = findServed(GROUP, 'v1', plural);
    if (served === undefined) return [];
    const { start, end } = rangeOf(served, '');
    const found: Stored[] = [];
    this.#world.at(served).storage.page(start, end, 0, (row) => {
      const revision = row.modRevision;
      found.push({ object: decodeRow(served, row, revision), revision });
      return true;
    });
    return found;
  }

  /** The mandatory objects count even where they are missing, or dangle. */
  #build(levels: readonly JsonObject[], schemas: readonly JsonObject[]): FlowTable {
    const mandatory = standardObjects().filter((one) => one.isMandatory);
    const nameOf = (object: JsonObject): string => stringAt(object, 'metadata', 'name');
    const withMandatory = (kind: string, given: readonly JsonObject[]): JsonObject[] => {
      const names = new Set(given.map(nameOf));
      const missing = mandatory
        .map(({ object }) => object)
        .filter((object) => object['kind'] === kind)
        .filter((object) => !names.has(nameOf(object)));
      return [...given, ...missing];
    };
    const configs = withMandatory('PriorityLevelConfiguration', levels).map(readLevel);
    const known = new Set(levels.map(nameOf));
    const leading = schemas.filter((object) =>
      known.has(stringAt(object, 'spec', 'priorityLevelConfiguration', 'name')),
    );
    const read = withMandatory('FlowSchema', leading).map(readFlowSchema);
    this.levels.configure(configs, this.#clockMs());
    this.#routes = new Map();
    const fallback = read.find(({ name }) => name === CATCH_ALL);
    if (fallback === undefined) throw new Error('the flow schema catch-all is always there');
    return new FlowTable(read, fallback);
  }

  #tellDangling({ object, revision }: Stored, levels: ReadonlySet<string>): void {
    const served = findServed(GROUP, 'v1', 'flowschemas');
    if (served === undefined) return;
    const level = stringAt(object, 'spec', 'priorityLevelConfiguration', 'name');
    const about =
      `This FlowSchema references the PriorityLevelConfiguration object named ` +
      JSON.stringify(level);
    const isThere = levels.has(level);
    const wanted = {
      status: isThere ? 'False' : 'True',
      reason: isThere ? 'Found' : 'NotFound',
      message: isThere ? `${about} and it exists` : `${about} but there is no such object`,
    };
    const conditions = listAt(object, 'status', 'conditions').filter(isObject);
    const present = conditions.find((one) => one['type'] === 'Dangling');
    const isSame = (['status', 'reason', 'message'] as const).every(
      (field) => present?.[field] === wanted[field],
    );
    if (!isSame) this.#writeCondition(served, object, revision, conditions, wanted);
  }

  #writeCondition(
    served: Served,
    object: JsonObject,
    revision: number,
    conditions: readonly JsonObject[],
    { status, reason, message }: Readonly<Record<'status' | 'reason' | 'message', string>>,
  ): void {
    const { storage, edge } = this.#world.at(served);
    const lastTransitionTime = timestamp(edge.nowMs());
    const condition = { type: 'Dangling', status, lastTransitionTime, reason, message };
    const others = conditions.filter((one) => one['type'] !== 'Dangling');
    const next: JsonObject = {
      ...object,
      status: { ...objectAt(object, 'status'), conditions: [...others, condition] },
    };
    const writer = { fieldManager: CONFIG_MANAGER, nowMs: edge.nowMs() };
    trackAppliedStatus(served, object, next, { conditions: [condition] }, writer);
    const key = keyOf(served, '', stringAt(object, 'metadata', 'name'));
    // whoever wrote in between makes us look again
    storage.put(key, encodeCanonical(next), revision, () => {});
  }
}
