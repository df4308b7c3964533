/**
 * The law on keys: no plain object is indexed by a text that is not known to the program.
 *
 * `object[name]` finds what the object inherits (`constructor`), and `object[name] = value` sets
 * what it inherits from (`__proto__`), when a client chooses the name. The compiler's own types
 * tell which keys are texts. Fine are, beside numbers and symbols:
 *
 * - literals, unions of literals, and constants, lists and sets of them, that are no member of
 *   `Object.prototype`; texts that begin with a literal that none of those begins with;
 * - a key that `Object.hasOwn(object, key)` has found before, in the same condition or above it;
 * - objects that inherit nothing, which their type tells (`Bare`);
 * - a key that comes from `Object.keys(object)` or `Object.entries(object)` of the same object.
 *
 * All else is a `Map`, or `ownMember` and `putMember` of `@megaplane/base/members`.
 */
import { relative } from 'node:path';
import { NodeFlags, SyntaxKind, type Node, type SourceFile } from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';
import type { FileSystem } from 'typescript/unstable/fs';
import { API, TypeFlags, type Checker, type Project, type Type } from 'typescript/unstable/sync';

/** What every plain object inherits. */
const INHERITED: readonly string[] = Object.getOwnPropertyNames(Object.prototype);
/** The one file that may index objects by any text. */
const OWN_FILE = 'packages/base/src/collections/members.ts';

/** One place that breaks the law. */
interface Finding {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** A member of an object by a computed name. */
interface Access {
  readonly node: Node;
  readonly object: Node | null;
  readonly key: Node;
}

/** Whether a file is part of what runs: neither a test nor a tool. */
function isJudged(path: string): boolean {
  return (
    /^packages\/[a-z]+\/src\/.*\.ts$/.test(path) &&
    !/\.(test|bench|sim)\.ts$/.test(path) &&
    path !== OWN_FILE
  );
}

/**
 * All places in a project that break the law. `root` is the folder of its configuration, which
 * paths are told from; `fs` stands for the disk.
 */
export function findKeys(root: string, fs?: FileSystem): Finding[] {
  const api = new API({ cwd: root, ...(fs === undefined ? {} : { fs }) });
  try {
    return findingsOf(api, root);
  } finally {
    api.close();
  }
}

function findingsOf(api: API, root: string): Finding[] {
  const snapshot = api.updateSnapshot({ openProjects: [`${root}/tsconfig.json`] });
  const project = snapshot.getProject(`${root}/tsconfig.json`);
  if (project === undefined) throw new Error(`${root}/tsconfig.json: no such project`);
  return project.rootFiles.flatMap((file) => {
    const path = relative(root, file).replaceAll('\\', '/');
    return isJudged(path) ? findingsIn(project, file, path) : [];
  });
}

function findingsIn(project: Project, file: string, path: string): Finding[] {
  const source = project.program.getSourceFile(file);
  if (source === undefined) throw new Error(`${path}: not in the program`);
  const judge = new Judge(source, project.checker);
  return judge.broken().map(({ node }) => {
    const from = node.getStart(source);
    const line = source.text.slice(0, from).split('\n').length;
    return { path, line, text: source.text.slice(from, node.end).split('\n')[0] ?? '' };
  });
}

class Judge {
  readonly #source: SourceFile;
  readonly #checker: Checker;

  constructor(source: SourceFile, checker: Checker) {
    this.#source = source;
    this.#checker = checker;
  }

  broken(): Access[] {
    const accesses: Access[] = [];
    const broken: Access[] = [];
    const visit = (node: Node): void => {
      const access = accessOf(node);
      if (access !== null) accesses.push(access);
      const assigned = assignedFrom(node);
      if (assigned !== null) broken.push(assigned);
      node.forEachChild(visit);
    };
    visit(this.#source);
    const asked = accesses.filter((one) => !this.#isKnown(one.key) && !this.#isOwn(one));
    const types = this.#checker.getTypeAtLocation(asked.map(({ key }) => bareKey(key)));
    const open = asked.filter((_one, at) => this.#isOpen(types[at]));
    broken.push(...open.filter(({ object }) => object === null || !this.#isBare(object)));
    return broken;
  }

  /** Whether an object inherits nothing, by its type. */
  #isBare(object: Node): boolean {
    const type = this.#checker.getTypeAtLocation(object);
    const given = type === undefined ? undefined : this.#checker.getNonNullableType(type);
    if (given === undefined || given.isUnionType()) return false;
    const members = this.#checker.getPropertiesOfType(given);
    return members.some((one) =>
      one.declarations.some(
        ({ path }) => path.endsWith(`/${OWN_FILE}`) && one.escapedName.startsWith('__@BARE'),
      ),
    );
  }

  /** Whether a key of this type may be any text. */
  #isOpen(type: Type | undefined): boolean {
    if (type === undefined) return true;
    if (type.isUnionType()) return type.getTypes().some((one) => this.#isOpen(one));
    if (type.isIntersectionType()) return type.getTypes().every((one) => this.#isOpen(one));
    if (type.isStringLiteralType()) return INHERITED.includes(type.value);
    const { flags } = type;
    if ((flags & (TypeFlags.Any | TypeFlags.Unknown)) !== 0) return true;
    if ((flags & TypeFlags.Instantiable) !== 0) {
      if ((flags & (TypeFlags.TemplateLiteral | TypeFlags.StringMapping)) !== 0) return true;
      return this.#isOpen(this.#checker.getBaseConstraintOfType(type));
    }
    return (flags & TypeFlags.StringLike) !== 0;
  }

  /** Whether the syntax alone shows that a key is a word of the program. */
  #isKnown(key: Node): boolean {
    const words = this.#wordsOf(key);
    return words !== null && words.every((word) => !INHERITED.includes(word));
  }

  /** The words that a key may be, or what it begins with: null where the syntax does not tell. */
  #wordsOf(key: Node): readonly string[] | null {
    if (is.isStringLiteral(key) || is.isNoSubstitutionTemplateLiteral(key)) return [key.text];
    if (is.isNumericLiteral(key)) return [];
    if (is.isParenthesizedExpression(key)) return this.#wordsOf(key.expression);
    if (is.isConditionalExpression(key)) {
      const [whole, other] = [this.#wordsOf(key.whenTrue), this.#wordsOf(key.whenFalse)];
      return whole === null || other === null ? null : [...whole, ...other];
    }
    if (is.isTemplateExpression(key)) return beginning(key.head.text);
    if (is.isBinaryExpression(key) && key.operatorToken.kind === SyntaxKind.PlusToken) {
      const words = this.#wordsOf(key.left);
      return words === null || words.some((word) => beginning(word) === null) ? null : [];
    }
    return is.isIdentifier(key) ? this.#wordsOfName(key) : null;
  }

  #wordsOfName(from: Node): readonly string[] | null {
    const declared = this.#declarationOf(from);
    if (declared === null) return null;
    const { parent } = declared;
    if (is.isVariableDeclaration(declared)) {
      if (!isConstant(declared)) return null;
      const loop = parent.parent;
      if (is.isForOfStatement(loop)) return this.#listed(loop.expression);
      return declared.initializer === undefined ? null : this.#wordsOf(declared.initializer);
    }
    if (!is.isParameterDeclaration(declared)) return null;
    const call = parent.parent;
    if (!is.isCallExpression(call) || call.arguments[0] !== parent) return null;
    const method = call.expression;
    if (!is.isPropertyAccessExpression(method) || !EACH.has(method.name.text)) return null;
    return is.isArrowFunction(parent) && parent.parameters[0] === declared
      ? this.#listed(method.expression)
      : null;
  }

  /** The words of a list or set that is written down. */
  #listed(list: Node): readonly string[] | null {
    if (is.isParenthesizedExpression(list) || is.isAsExpression(list)) {
      return this.#listed(list.expression);
    }
    if (is.isArrayLiteralExpression(list)) {
      const each = list.elements.map((one) =>
        is.isSpreadElement(one) ? this.#listed(one.expression) : this.#wordsOf(one),
      );
      return each.every((words) => words !== null) ? each.flat() : null;
    }
    if (is.isNewExpression(list) && is.isIdentifier(list.expression)) {
      const [words] = list.arguments ?? [];
      return list.expression.text === 'Set' && words !== undefined ? this.#listed(words) : null;
    }
    if (is.isCallExpression(list) && is.isPropertyAccessExpression(list.expression)) {
      const { expression, name } = list.expression;
      return FEWER.has(name.text) ? this.#listed(expression) : null;
    }
    if (!is.isIdentifier(list)) return null;
    const declared = this.#declarationOf(list);
    if (declared === null || !is.isVariableDeclaration(declared) || !isConstant(declared)) {
      return null;
    }
    return declared.initializer === undefined ? null : this.#listed(declared.initializer);
  }

  /** The declaration of a name in this file or, by imports, in another; null: not found. */
  #declarationOf(from: Node): Node | null {
    const found = this.#checker.getSymbolAtLocation(from);
    if (found === undefined) return null;
    const symbol = found.declarations.some((one) => one.kind === SyntaxKind.ImportSpecifier)
      ? this.#checker.getAliasedSymbol(found)
      : found;
    return symbol.valueDeclaration?.resolve() ?? null;
  }

  /** Whether the object is known to have the key itself. */
  #isOwn({ node, object, key }: Access): boolean {
    if (object === null) return false;
    const wanted = `${this.#text(object)},${this.#text(bareKey(key))}`;
    for (let at = node; at.parent !== undefined; at = at.parent) {
      const { parent } = at;
      if (this.#isFoundBy(parent, at, wanted)) return true;
      if (is.isFunctionDeclaration(parent) || is.isMethodDeclaration(parent)) break;
    }
    return this.#isOfKeys(object, key);
  }

  #isFoundBy(parent: Node, at: Node, wanted: string): boolean {
    if (is.isConditionalExpression(parent)) {
      if (parent.whenTrue === at) return this.#shows(parent.condition, wanted, true);
      return parent.whenFalse === at && this.#shows(parent.condition, wanted, false);
    }
    if (is.isIfStatement(parent)) {
      if (parent.thenStatement === at) return this.#shows(parent.expression, wanted, true);
      return parent.elseStatement === at && this.#shows(parent.expression, wanted, false);
    }
    if (is.isBinaryExpression(parent) && parent.right === at) {
      const { kind } = parent.operatorToken;
      if (kind === SyntaxKind.AmpersandAmpersandToken)
        return this.#shows(parent.left, wanted, true);
      return kind === SyntaxKind.BarBarToken && this.#shows(parent.left, wanted, false);
    }
    if (!is.isBlock(parent)) return false;
    for (const statement of parent.statements) {
      if (statement === at) return false;
      if (!is.isIfStatement(statement) || !leaves(statement.thenStatement)) continue;
      if (this.#shows(statement.expression, wanted, false)) return true;
    }
    return false;
  }

  /** Whether a condition that came out as `outcome` shows that the object has the key. */
  #shows(condition: Node, wanted: string, outcome: boolean): boolean {
    if (is.isParenthesizedExpression(condition)) {
      return this.#shows(condition.expression, wanted, outcome);
    }
    if (is.isPrefixUnaryExpression(condition)) {
      return (
        condition.operator === SyntaxKind.ExclamationToken &&
        this.#shows(condition.operand, wanted, !outcome)
      );
    }
    if (is.isBinaryExpression(condition)) {
      const { kind } = condition.operatorToken;
      const joins = outcome ? SyntaxKind.AmpersandAmpersandToken : SyntaxKind.BarBarToken;
      if (kind !== joins) return false;
      return (
        this.#shows(condition.left, wanted, outcome) ||
        this.#shows(condition.right, wanted, outcome)
      );
    }
    if (!outcome || !is.isCallExpression(condition)) return false;
    if (this.#text(condition.expression) !== 'Object.hasOwn') return false;
    return condition.arguments.map((one) => this.#text(one)).join(',') === wanted;
  }

  /** Whether the key comes from `Object.keys(object)` or `Object.entries(object)`. */
  #isOfKeys(object: Node, claimed: Node): boolean {
    const key = bareKey(claimed);
    if (!is.isIdentifier(key)) return false;
    const symbol = this.#checker.getSymbolAtLocation(key);
    let declared = symbol?.valueDeclaration?.resolve() ?? null;
    let isEntry = false;
    if (declared !== null && is.isBindingElement(declared)) {
      const pattern = declared.parent;
      if (!is.isArrayBindingPattern(pattern) || pattern.elements[0] !== declared) return false;
      declared = pattern.parent;
      isEntry = true;
    }
    if (declared === null) return false;
    const { parent } = declared;
    if (is.isVariableDeclaration(declared) && is.isForInStatement(parent.parent)) {
      return this.#text(parent.parent.expression) === this.#text(object);
    }
    const list = listOver(declared);
    if (list === null) return false;
    const wanted = `Object.${isEntry ? 'entries' : 'keys'}(${this.#text(object)})`;
    return this.#text(rootOf(list)) === wanted;
  }

  #text(node: Node): string {
    return this.#source.text.slice(node.getStart(this.#source), node.end).replaceAll(/\s+/g, '');
  }
}

/** Methods that hand each item of a list to a function. */
const EACH: ReadonlySet<string> = new Set(
  'every filter find findIndex flatMap forEach map some'.split(' '),
);
/** Methods that give some or all items of a list. */
const FEWER: ReadonlySet<string> = new Set('filter slice sort toSorted toReversed'.split(' '));

/** What a text that begins with this may be: nothing that is inherited, or null. */
function beginning(text: string): readonly string[] | null {
  return text === '' || INHERITED.some((name) => name.startsWith(text)) ? null : [];
}

/** A key without what the program only claims of it: `text as Verb` is a text. */
function bareKey(key: Node): Node {
  if (is.isAsExpression(key) || is.isParenthesizedExpression(key)) return bareKey(key.expression);
  return is.isNonNullExpression(key) ? bareKey(key.expression) : key;
}

function isConstant(declared: Node): boolean {
  const list = declared.parent;
  return is.isVariableDeclarationList(list) && (list.flags & NodeFlags.Const) !== 0;
}

/** The list whose items a name stands for: that of a loop, or of a method such as `map`. */
function listOver(declared: Node): Node | null {
  const { parent } = declared;
  if (is.isVariableDeclaration(declared)) {
    return is.isForOfStatement(parent.parent) ? parent.parent.expression : null;
  }
  if (!is.isParameterDeclaration(declared) || !is.isArrowFunction(parent)) return null;
  const call = parent.parent;
  if (parent.parameters[0] !== declared || !is.isCallExpression(call)) return null;
  const method = call.expression;
  if (call.arguments[0] !== parent || !is.isPropertyAccessExpression(method)) return null;
  return EACH.has(method.name.text) ? method.expression : null;
}

/** A list before some of its items were taken. */
function rootOf(list: Node): Node {
  if (!is.isCallExpression(list) || !is.isPropertyAccessExpression(list.expression)) return list;
  const { expression, name } = list.expression;
  return FEWER.has(name.text) ? rootOf(expression) : list;
}

function leaves(statement: Node): boolean {
  if (is.isBlock(statement)) {
    const last = statement.statements.at(-1);
    return last !== undefined && leaves(last);
  }
  return (
    is.isReturnStatement(statement) ||
    is.isContinueStatement(statement) ||
    is.isThrowStatement(statement) ||
    is.isBreakStatement(statement)
  );
}

/** The access that a node is, unless it deletes: an object loses only what is its own. */
function accessOf(node: Node): Access | null {
  if (is.isElementAccessExpression(node)) {
    if (is.isDeleteExpression(node.parent)) return null;
    return { node, object: node.expression, key: node.argumentExpression };
  }
  if (is.isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.InKeyword) {
    if (is.isPrivateIdentifier(node.left)) return null;
    return { node, object: node.right, key: node.left };
  }
  if (is.isBindingElement(node) && node.propertyName !== undefined) {
    const name = node.propertyName;
    if (is.isComputedPropertyName(name)) return { node, object: null, key: name.expression };
  }
  return null;
}

/** `Object.assign` and `Reflect` set and find what is inherited, by whatever names there are. */
function assignedFrom(node: Node): Access | null {
  if (!is.isPropertyAccessExpression(node)) return null;
  const { expression, name } = node;
  const access = { node, object: expression, key: name };
  if (name.text === '__proto__') return access;
  if (!is.isIdentifier(expression)) return null;
  if (expression.text === 'Reflect' && /^(get|set|has)$/.test(name.text)) {
    return isInProxy(node) ? null : access;
  }
  if (expression.text !== 'Object' || name.text !== 'assign') return null;
  const call = node.parent;
  const isWritten =
    is.isCallExpression(call) && call.arguments.slice(1).every((one) => isWrittenDown(one));
  return isWritten ? null : access;
}

/** What a proxy is asked for by name, the program asks for. */
function isInProxy(node: Node): boolean {
  for (let at = node; at.parent !== undefined; at = at.parent) {
    const { parent } = at;
    if (is.isNewExpression(parent) && is.isIdentifier(parent.expression)) {
      if (parent.expression.text === 'Proxy') return true;
    }
  }
  return false;
}

/** An object whose names are all in the source. */
function isWrittenDown(object: Node): boolean {
  return (
    is.isObjectLiteralExpression(object) &&
    object.properties.every((one) => !is.isSpreadAssignment(one))
  );
}
