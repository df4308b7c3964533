/** What OpenAPI documents say of operations, in upstream's words (apiserver/pkg/endpoints). */

/** An operation of a kind, or of a part of it. */
export interface Worded {
  readonly method: string;
  /** As `x-kubernetes-action` has it. */
  readonly action: string;
  readonly kind: string;
  /** '' for the kind itself. */
  readonly subresource: string;
  /** A list may be watched. */
  readonly isWatched: boolean;
}

/** Descriptions of answers by their codes; others are not told of. */
export const ANSWERS: Readonly<Record<string, string>> = {
  '200': 'OK',
  '201': 'Created',
  '202': 'Accepted',
};

const INSTEAD = "deprecated: use the 'watch' parameter with a list operation instead";

export function operationWords(operation: Worded): string {
  const { method, action, kind, subresource, isWatched } = operation;
  const of = subresource === '' ? '' : `${subresource} of `;
  const single = subresource === '' ? `${article(kind)}${kind}` : `a ${kind}`;
  switch (action) {
    case 'list':
      return `list${isWatched ? ' or watch' : ''} objects of kind ${kind}`;
    case 'get':
      return `read ${of}the specified ${kind}`;
    case 'put':
      return `replace ${of}the specified ${kind}`;
    case 'patch':
      return `partially update ${of}the specified ${kind}`;
    case 'post':
      return `create ${of}${single}`;
    case 'delete':
      return `delete ${of}${single}`;
    case 'deletecollection':
      return `delete collection of ${kind}`;
    case 'watchlist':
      return `watch individual changes to a list of ${kind}. ${INSTEAD}.`;
    case 'watch':
      return (
        `watch changes to an object of kind ${kind}. ${INSTEAD}, ` +
        "filtered to a single item with the 'fieldSelector' parameter."
      );
    case 'connect':
      return `connect ${method.toUpperCase()} requests to ${subresource} of ${kind}`;
    default:
      return '';
  }
}

/** Upstream's `GetArticleForNoun`: none for many, which end with one "s". */
function article(noun: string): string {
  if (noun.endsWith('s') && !noun.endsWith('ss')) return '';
  return /^[AEIOU]/i.test(noun) ? 'an ' : 'a ';
}
