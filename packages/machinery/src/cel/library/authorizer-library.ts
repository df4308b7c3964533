/** `authorizer`: questions about what a user may do, asked from within an expression. */
import type { Library } from '../values/functions.ts';
import { CelError, Opaque, type CelValue } from '../values/values.ts';

/** One question. A path stands alone; all others name a group, a resource and a verb. */
export interface Question {
  readonly path: string | null;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** '' asks for the user of the request. */
  readonly serviceAccount: { readonly namespace: string; readonly name: string } | null;
  readonly fieldSelector: string;
  readonly labelSelector: string;
  readonly verb: string;
}

export interface Answer {
  readonly allowed: boolean;
  readonly reason: string;
  readonly error: string;
}

export type Ask = (question: Question) => Answer;

const NOTHING: Question = {
  path: null,
  group: '',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
  serviceAccount: null,
  fieldSelector: '',
  labelSelector: '',
  verb: '',
};

class Check extends Opaque {
  readonly typeName: string;
  readonly ask: Ask;
  readonly question: Question;
  constructor(typeName: string, ask: Ask, question: Question) {
    super();
    this.typeName = typeName;
    this.ask = ask;
    this.question = question;
  }
  equals(other: Opaque): boolean {
    return other === this;
  }
  with(more: Partial<Question>, typeName: string = this.typeName): Check {
    return new Check(typeName, this.ask, { ...this.question, ...more });
  }
}

class Decision extends Opaque {
  readonly typeName = 'kubernetes.authorization.Decision';
  readonly answer: Answer;
  constructor(answer: Answer) {
    super();
    this.answer = answer;
  }
  equals(other: Opaque): boolean {
    return other === this;
  }
}

const AUTHORIZER = 'kubernetes.authorization.Authorizer';
const PATH_CHECK = 'kubernetes.authorization.PathCheck';
const GROUP_CHECK = 'kubernetes.authorization.GroupCheck';
const RESOURCE_CHECK = 'kubernetes.authorization.ResourceCheck';
const DECISION = 'kubernetes.authorization.Decision';

/** The value of `authorizer` (or, with a resource, of `authorizer.requestResource`). */
export function authorizerValue(ask: Ask, resource: Partial<Question> | null = null): CelValue {
  const typeName = resource === null ? AUTHORIZER : RESOURCE_CHECK;
  return new Check(typeName, ask, { ...NOTHING, ...resource });
}

export const AUTHORIZER_TYPE: string = AUTHORIZER;
export const RESOURCE_CHECK_TYPE: string = RESOURCE_CHECK;

function path(own: Check, text: string): CelValue {
  if (text === '') return new CelError('path must not be empty');
  return own.with({ path: text }, PATH_CHECK);
}

function decide(own: Check, verb: string): CelValue {
  return new Decision(own.ask({ ...own.question, verb }));
}

function serviceAccount(own: Check, namespace: string, name: string): CelValue {
  if (namespace === '' || name === '') return new CelError('Invalid service account name');
  return own.with({ serviceAccount: { namespace, name } });
}

export const AUTHORIZER_LIBRARY: Library = {
  [`authorizer_path: ${AUTHORIZER} . path(string): ${PATH_CHECK}`]: path,
  [`authorizer_group: ${AUTHORIZER} . group(string): ${GROUP_CHECK}`]: (
    own: Check,
    group: string,
  ) => own.with({ group }, GROUP_CHECK),
  [`authorizer_serviceaccount: ${AUTHORIZER} . serviceAccount(string, string): ${AUTHORIZER}`]:
    serviceAccount,
  [`groupcheck_resource: ${GROUP_CHECK} . resource(string): ${RESOURCE_CHECK}`]: (
    own: Check,
    resource: string,
  ) => own.with({ resource }, RESOURCE_CHECK),
  [`resourcecheck_subresource: ${RESOURCE_CHECK} . subresource(string): ${RESOURCE_CHECK}`]: (
    own: Check,
    subresource: string,
  ) => own.with({ subresource }),
  [`resourcecheck_namespace: ${RESOURCE_CHECK} . namespace(string): ${RESOURCE_CHECK}`]: (
    own: Check,
    namespace: string,
  ) => own.with({ namespace }),
  [`resourcecheck_name: ${RESOURCE_CHECK} . name(string): ${RESOURCE_CHECK}`]: (
    own: Check,
    name: string,
  ) => own.with({ name }),
  [`resourcecheck_fieldselector: ${RESOURCE_CHECK} . fieldSelector(string): ${RESOURCE_CHECK}`]: (
    own: Check,
    fieldSelector: string,
  ) => own.with({ fieldSelector }),
  [`resourcecheck_labelselector: ${RESOURCE_CHECK} . labelSelector(string): ${RESOURCE_CHECK}`]: (
    own: Check,
    labelSelector: string,
  ) => own.with({ labelSelector }),
  [`pathcheck_check: ${PATH_CHECK} . check(string): ${DECISION}`]: decide,
  [`resourcecheck_check: ${RESOURCE_CHECK} . check(string): ${DECISION}`]: decide,
  [`decision_errored: ${DECISION} . errored(): bool`]: ({ answer }: Decision) =>
    answer.error !== '',
  [`decision_error: ${DECISION} . error(): string`]: ({ answer }: Decision) => answer.error,
  [`decision_allowed: ${DECISION} . allowed(): bool`]: ({ answer }: Decision) => answer.allowed,
  [`decision_reason: ${DECISION} . reason(): string`]: ({ answer }: Decision) => answer.reason,
};
