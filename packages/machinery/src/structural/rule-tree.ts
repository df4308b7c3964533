/**
 * The rules of a schema (`x-kubernetes-validations`), where they are. Compiled when the first
 * object is judged by them; equal nodes share what was compiled.
 */
import { ownMember } from '@megaplane/base/members';
import { declaredType, isDeclared } from '../cel/declarations.ts';
import {
  compileRules,
  evaluateRules,
  type CompiledRules,
  type RuleBudget,
  type RuleFailure,
} from '../cel/validation-rules.ts';
import type { FieldError, FieldErrorKind } from '../meta/fielderrors.ts';
import { FIELD_ERROR_KINDS, fieldErrorText, printed, printedValue } from '../meta/fielderrors.ts';
import { isNumber, isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { itemKey, keyedItems, type Correlation } from './correlation.ts';
import { child, childKey, item, shownPath } from './schema/field-path.ts';
import { goNumber } from '../gotext/go-texts.ts';
import { followPath } from './schema/rule-path.ts';
import type { SchemaNode } from './schema/schema-node.ts';

interface RuleTree {
  readonly node: SchemaNode;
  readonly compiled: CompiledRules | null;
  /** There are rules, and no type for them to be about. */
  readonly isBroken: boolean;
  readonly properties: readonly (readonly [name: string, tree: RuleTree])[];
  readonly items: RuleTree | null;
  readonly additional: RuleTree | null;
}

const plainTrees = new WeakMap<SchemaNode, RuleTree | null>();
const rootTrees = new WeakMap<SchemaNode, RuleTree | null>();

/** The rules of a node and below; null where there are none. */
function treeOf(node: SchemaNode | null, isRoot: boolean): RuleTree | null {
  if (node === null || !node.hasRules) return null;
  const trees = isRoot ? rootTrees : plainTrees;
  let tree = trees.get(node);
  if (tree === undefined) trees.set(node, (tree = makeTree(node, isRoot)));
  return tree;
}

/** Whether anything is to be run on values of a node. */
export function hasRunnableRules(root: SchemaNode): boolean {
  return treeOf(root, true) !== null;
}

/** Compiles the rules of a node and below, those of one node with each step. */
export function* compilingRules(node: SchemaNode, isRoot: boolean): Generator<void, void> {
  if (!node.hasRules || (isRoot ? rootTrees : plainTrees).has(node)) return;
  const below = Array.from(node.properties?.values() ?? []).filter(isDeclared);
  for (const one of [...below, node.items, node.additional]) {
    if (one !== null) yield* compilingRules(one, one.isEmbedded);
  }
  treeOf(node, isRoot);
  yield;
}

function makeTree(node: SchemaNode, isRoot: boolean): RuleTree | null {
  const type = node.rules.length === 0 ? null : declaredType(node, 'selfType', isRoot);
  const properties: (readonly [string, RuleTree])[] = [];
  for (const [name, property] of node.properties ?? []) {
    // what has no type cannot be named, and what cannot be named is not judged
    const tree = isDeclared(property) ? treeOf(property, property.isEmbedded) : null;
    if (tree !== null) properties.push([name, tree]);
  }
  const compiled = type === null ? null : compileRules(type, node.rules);
  const isBroken = type === null && node.rules.length > 0;
  const items = treeOf(node.items, node.items?.isEmbedded === true);
  const additional = treeOf(node.additional, node.additional?.isEmbedded === true);
  const isEmpty = compiled === null && !isBroken && items === null && additional === null;
  if (isEmpty && properties.length === 0) return null;
  return { node, compiled, isBroken, properties, items, additional };
}

const UNTYPED =
  'rule compiler initialization error: failed to convert to declType for CEL validation rules';

/** How a value and those above it compare with what they replace. */
interface Ties {
  readonly own: Correlation | null;
  /** The nearest above that has a counterpart; null at the root. */
  readonly above: Correlation | null;
}

const UNTIED: Ties = { own: null, above: null };

function tieMember(ties: Ties, name: string): Ties {
  if (ties.own === null) return ties;
  if (ties.above === null && (name === 'apiVersion' || name === 'kind')) return UNTIED;
  return { own: ties.own.member(name), above: ties.own };
}

function tieItem(ties: Ties, index: number): Ties {
  if (ties.own === null) return ties;
  return { own: ties.own.item(index), above: ties.own };
}

function isUnchanged({ own, above }: Ties): boolean {
  return own === null ? above?.isEqual() === true : own.isEqual();
}

/** One run of the rules over one object. */
interface Run {
  readonly budget: RuleBudget;
  readonly found: FieldError[];
  /** Takes what would be refused, had it changed. */
  readonly warn: (text: string) => void;
}

/**
 * Runs all rules on a value. Stops when the budget is used up (it is then below zero). `path` is ''
 * for a whole object; `isRoot` says that the node is the root of a resource.
 */
export function runRules(
  node: SchemaNode,
  isRoot: boolean,
  value: JsonValue,
  old: JsonValue | undefined,
  correlation: Correlation | null,
  path: string,
  run: Run,
): void {
  const tree = treeOf(node, isRoot);
  if (tree !== null) judge(tree, value, old, { own: correlation, above: null }, path, run);
}

function judge(
  tree: RuleTree,
  value: JsonValue,
  old: JsonValue | undefined,
  ties: Ties,
  path: string,
  run: Run,
): void {
  if (value === null) return;
  if (tree.compiled !== null) {
    judgeNode(tree.node, tree.compiled, value, old ?? undefined, ties, path, run);
  } else if (tree.isBroken) {
    const body = `Invalid value: ${printedValue(tree.node.type)}: ${UNTYPED}`;
    run.found.push({ kind: 'invalid', field: shownPath(path), body });
  }
  if (run.budget.left < 0) return;
  if (Array.isArray(value)) {
    if (tree.items !== null) judgeItems(tree, tree.items, value, old, ties, path, run);
  } else if (isObject(value)) {
    judgeMembers(tree, value, isObject(old) ? old : undefined, ties, path, run);
  }
}

function judgeItems(
  { node }: RuleTree,
  items: RuleTree,
  value: readonly JsonValue[],
  old: JsonValue | undefined,
  ties: Ties,
  path: string,
  run: Run,
): void {
  const before = Array.isArray(old) ? keyedItems(node, old) : null;
  for (const [i, one] of value.entries()) {
    const key = before === null ? null : itemKey(node.mapKeys, one);
    const previous = key === null ? undefined : before?.get(key);
    judge(items, one, previous, tieItem(ties, i), item(path, i), run);
    if (run.budget.left < 0) return;
  }
}

function judgeMembers(
  tree: RuleTree,
  value: JsonObject,
  old: JsonObject | undefined,
  ties: Ties,
  path: string,
  run: Run,
): void {
  if (tree.additional !== null) {
    for (const name in value) {
      const member = value[name] ?? null;
      judge(
        tree.additional,
        member,
        ownMember(old, name),
        tieMember(ties, name),
        childKey(path, name),
        run,
      );
      if (run.budget.left < 0) return;
    }
  }
  for (const [name, property] of tree.properties) {
    const member = ownMember(value, name);
    if (member === undefined) continue;
    judge(property, member, ownMember(old, name), tieMember(ties, name), child(path, name), run);
    if (run.budget.left < 0) return;
  }
}

function judgeNode(
  node: SchemaNode,
  compiled: CompiledRules,
  value: JsonValue,
  old: JsonValue | undefined,
  ties: Ties,
  path: string,
  run: Run,
): void {
  for (const fault of compiled.faults) {
    if (fault.field !== 'rule') continue;
    const body = `Invalid value: ${printedValue(node.type)}: rule compile error: ${fault.message}`;
    run.found.push({ kind: 'invalid', field: shownPath(path), body });
  }
  for (const failure of evaluateRules(compiled, value, old, run.budget)) {
    const error = errorOf(node, failure, value, path);
    const isRatcheted = failure.kind !== 'broken' && !failure.isTransition && isUnchanged(ties);
    if (isRatcheted) run.warn(fieldErrorText(error));
    else run.found.push(error);
  }
}

const KINDS: Readonly<Record<string, FieldErrorKind>> = {
  FieldValueForbidden: 'forbidden',
  FieldValueRequired: 'required',
  FieldValueDuplicate: 'duplicate',
};

function errorOf(
  node: SchemaNode,
  { source, message, kind }: RuleFailure,
  value: JsonValue,
  path: string,
): FieldError {
  if (kind === 'broken') {
    const body = `Invalid value: ${printedValue(node.type)}: ${message}`;
    return { kind: 'invalid', field: shownPath(path), body };
  }
  const field = shownPath(fieldOf(node, source.fieldPath ?? '', path));
  if (kind === 'silent') {
    const body = `Invalid value: ${printedValue(node.type)}: ${message}`;
    return { kind: 'invalid', field, body };
  }
  const reason = ownMember(KINDS, source.reason ?? '') ?? 'invalid';
  const { text, withValue } = FIELD_ERROR_KINDS[reason];
  const isComposite = node.type === 'object' || node.type === 'array';
  const shown = isNumber(value) ? printed(goNumber(value)) : value;
  const valueText = withValue && !isComposite ? `: ${printedValue(shown)}` : '';
  const detail = reason === 'duplicate' ? '' : `: ${message}`;
  return { kind: reason, field, body: text + valueText + detail };
}

function fieldOf(node: SchemaNode, fieldPath: string, path: string): string {
  if (fieldPath === '') return path;
  const found = followPath(node, fieldPath, true);
  return found.ok && found.path !== '' ? child(path, found.path) : path;
}
