/**
 * The names by which a module reaches others: imports, types of imports, re-exports, dynamic
 * imports, and `new URL(name, import.meta.url)`.
 */
import { parseSync } from 'oxc-parser';

/** One name and where its literal stands, quotes included, in UTF-16 units. */
export interface ModuleName {
  readonly value: string;
  readonly start: number;
  readonly end: number;
  /** Whether nothing of it is left when types are stripped. */
  readonly isType: boolean;
  /** Whether it is a file's address only: a worker, a table. */
  readonly isUrl: boolean;
}

interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** All names in the order of the text. Throws with the place where the syntax is wrong. */
export function moduleNames(path: string, text: string): ModuleName[] {
  const result = parseSync(path, text);
  const error = result.errors[0];
  if (error !== undefined) throw new Error(`${path}: ${error.message}`);
  const names: ModuleName[] = [];
  walk(result.program as unknown as SyntaxNode, (node) => {
    if (/^(Import|ExportNamed|ExportAll)Declaration$/.test(node.type)) {
      push(names, node['source'], { isType: isOfTypes(node) });
    }
    if (node.type === 'ImportExpression') push(names, node['source']);
    if (node.type === 'TSImportType') push(names, node['source'], { isType: true });
    if (node.type === 'NewExpression' && isUrlOfThisModule(node)) {
      push(names, (node['arguments'] as SyntaxNode[])[0], { isUrl: true });
    }
  });
  return names;
}

function push(names: ModuleName[], node: unknown, how: Partial<ModuleName> = {}): void {
  const { type, value, start, end } = (node ?? {}) as Partial<SyntaxNode>;
  if (type === 'Literal' && typeof value === 'string' && start !== undefined && end !== undefined) {
    names.push({ value, start, end, isType: false, isUrl: false, ...how });
  }
}

/** `import type`, or an import or re-export each of whose members is marked as a type. */
function isOfTypes(node: SyntaxNode): boolean {
  if (node['importKind'] === 'type' || node['exportKind'] === 'type') return true;
  const members = (node['specifiers'] ?? []) as SyntaxNode[];
  const kinds = members.map((member) => member['importKind'] ?? member['exportKind']);
  return kinds.length > 0 && kinds.every((kind) => kind === 'type');
}

function isUrlOfThisModule(node: SyntaxNode): boolean {
  const callee = node['callee'] as SyntaxNode;
  const [, base] = node['arguments'] as SyntaxNode[];
  return callee['name'] === 'URL' && base?.type === 'MemberExpression';
}

function walk(node: SyntaxNode, visit: (node: SyntaxNode) => void): void {
  visit(node);
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) {
      for (const item of value) if (isSyntaxNode(item)) walk(item, visit);
    } else if (isSyntaxNode(value)) {
      walk(value, visit);
    }
  }
}

function isSyntaxNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value;
}
