/**
 * Rules of a definition are compiled when it is written, and what they can cost at most is added up
 * over all values that the schema allows: a rule within a list runs once for each item.
 */
import { declaredType } from '../cel/declarations.ts';
import { RULE_ESTIMATE_MAX, SCHEMA_ESTIMATE_MAX, type Program } from '../cel/program.ts';
import { compilingSteps, type CompiledRules } from '../cel/validation-rules.ts';
import { forbiddenField, internalFieldError, invalidValue, printed } from '../meta/fielderrors.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { listAt, stringAt } from '../json/json.ts';
import type { Findings } from '../validation/field/validation-rules.ts';
import { internalRule } from './internal-form.ts';
import type { SchemaNode } from '../structural/schema/schema-node.ts';

/** Bytes that a request may have; so many values fit into no more. */
const REQUEST_BYTES_MAX = 3 * 1024 * 1024;
const UINT64_MAX = 2 ** 64;
/** Rules that are named when all together cost too much. */
const DEAREST_MAX = 4;

/** What the rules of one schema come to. */
export class RuleTotal {
  total = 0;
  /** Fields and costs, the dearest first. */
  dearest: { readonly field: string; readonly cost: number }[] = [];

  observe(field: string, cost: number): void {
    this.total = Math.min(UINT64_MAX, this.total + cost);
    if (cost < SCHEMA_ESTIMATE_MAX / 100) return;
    this.dearest.push({ field, cost });
    this.dearest.sort((a, b) => b.cost - a.cost);
    this.dearest.length = Math.min(this.dearest.length, DEAREST_MAX);
  }

  /** Adds what is wrong with the sum. */
  check(found: Findings, path: string): void {
    if (this.total <= SCHEMA_ESTIMATE_MAX) return;
    const text =
      'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema';
    for (const { field } of this.dearest) found.push(forbiddenField(field, text));
    const what = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';
    found.push(forbiddenField(path, excessText(what, this.total, SCHEMA_ESTIMATE_MAX)));
  }
}

function excessText(what: string, cost: number, limit: number): string {
  const factor = cost / limit;
  let times = 'more than 100x';
  if (factor < 1.5) times = `${factor.toFixed(6)}x`;
  else if (factor <= 100) times = `${factor.toFixed(1)}x`;
  const advice =
    'try simplifying the rule, or adding maxItems, maxProperties, and maxLength ' +
    'where arrays, maps, and strings are declared';
  return `${what} exceeds budget by factor of ${times} (${advice})`;
}

/** A place in a schema, as rules see it: the compiled node, and how often its values can occur. */
export class RuleContext {
  readonly node: SchemaNode;
  readonly isRoot: boolean;
  readonly total: RuleTotal;
  /** Rules of a schema that did not change may cost what they cost. */
  readonly isUnchanged: boolean;
  /** Infinity: there is no bound. */
  readonly #times: number;

  constructor(
    node: SchemaNode,
    isRoot: boolean,
    total: RuleTotal,
    isUnchanged: boolean,
    times: number,
  ) {
    this.node = node;
    this.isRoot = isRoot;
    this.total = total;
    this.isUnchanged = isUnchanged;
    this.#times = times;
  }

  property(name: string, schema: JsonObject): RuleContext | null {
    return this.#below(this.node.properties?.get(name) ?? null, schema);
  }

  items(schema: JsonObject): RuleContext | null {
    return this.#below(this.node.items, schema);
  }

  additional(schema: JsonObject): RuleContext | null {
    return this.#below(this.node.additional, schema);
  }

  #below(node: SchemaNode | null, schema: JsonObject): RuleContext | null {
    if (node === null || !node.hasRules) return null;
    const isRoot = schema['x-kubernetes-embedded-resource'] === true;
    const times = Math.min(UINT64_MAX, this.#times * elementsMax(this.node));
    const bound = Number.isNaN(times) ? 0 : times;
    const isOpen = this.#times === Infinity || elementsMax(this.node) === Infinity;
    const below = isOpen ? Infinity : bound;
    return new RuleContext(node, isRoot, this.total, this.isUnchanged, below);
  }

  /** What an expression costs for all values together; `bytesMin` is of the shortest of them. */
  costOf(program: Program, bytesMin: number): number {
    const { max } = program.estimate();
    const open = Math.floor(REQUEST_BYTES_MAX / (bytesMin + 1));
    const times = this.#times === Infinity ? open : this.#times;
    return max === 0 ? 0 : Math.min(UINT64_MAX, max * times);
  }
}

function elementsMax(node: SchemaNode): number {
  const isMap = node.type === 'object' && node.additionalKind !== 'absent';
  if (isMap) return Math.max(0, node.propertiesMax);
  return node.type === 'array' ? Math.max(0, node.itemsMax) : 1;
}

/**
 * Adds what is wrong with the expressions of a schema that is right in all else; each of them is
 * compiled in a step of its own.
 */
export function* compiledSteps(
  found: Findings,
  schema: JsonObject,
  path: string,
  context: RuleContext,
  uncorrelatable: string,
): Generator<void, void> {
  const sources = listAt(schema, 'x-kubernetes-validations');
  if (sources.length === 0) return;
  const at = `${path}.x-kubernetes-validations`;
  const type = declaredType(context.node, 'selfType', context.isRoot);
  if (type === null) {
    const text =
      'internal error: failed to construct type information for x-kubernetes-validations rules: ' +
      'unable to convert structural schema to CEL declarations';
    found.push(internalFieldError(at, text));
    return;
  }
  const compiled = yield* compilingSteps(type, context.node.rules);
  for (const [i, source] of sources.entries()) {
    if (!isObject(source)) continue;
    const one = { index: i, source, at: `${at}[${i}]`, bytesMin: type.bytesMin ?? 0 };
    checkRule(found, one, compiled, context, uncorrelatable);
  }
}

interface RuleAt {
  readonly index: number;
  readonly source: JsonObject;
  readonly at: string;
  readonly bytesMin: number;
}

function checkRule(
  found: Findings,
  { index, source, at, bytesMin }: RuleAt,
  { rules, faults }: CompiledRules,
  context: RuleContext,
  uncorrelatable: string,
): void {
  const rule = rules.find((one) => one.index === index);
  const own = faults.filter((one) => one.index === index);
  const weigh = (program: Program | null, field: string, what: string, cost: number): void => {
    if (program === null) return;
    if (!context.isUnchanged && cost > RULE_ESTIMATE_MAX) {
      found.push(forbiddenField(`${at}.${field}`, excessText(what, cost, RULE_ESTIMATE_MAX)));
    }
    context.total.observe(`${at}.${field}`, cost);
  };
  if (rule !== undefined) {
    const cost = context.costOf(rule.program, bytesMin);
    weigh(rule.program, 'rule', 'estimated rule cost', cost);
  }
  for (const { field, message } of own) {
    found.push(invalidValue(`${at}.${field}`, printed(internalRule(source)), message));
  }
  if (rule !== undefined && rule.message !== null) {
    const cost = rule.message.estimate().max;
    weigh(rule.message, 'messageExpression', 'estimated messageExpression cost', cost);
  }
  const optional: JsonValue | undefined = source['optionalOldSelf'];
  if (rule?.isTransition === true) {
    if (uncorrelatable === '') return;
    const text =
      'oldSelf cannot be used on the uncorrelatable portion of the schema within ' + uncorrelatable;
    found.push(invalidValue(`${at}.rule`, stringAt(source, 'rule'), text));
  } else if (typeof optional === 'boolean') {
    const text = 'may not be set if oldSelf is not used in rule';
    found.push(invalidValue(`${at}.optionalOldSelf`, optional, text));
  }
}
