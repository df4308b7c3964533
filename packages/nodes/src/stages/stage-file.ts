/** Reads Stage files: every construct is compiled, and what cannot be is refused by its place. */
import { BOOL, DYN } from '@megaplane/machinery/cel/typing';
import type { Environment } from '@megaplane/machinery/cel/checker';
import { compileCel, type Program } from '@megaplane/machinery/cel/program';
import { stageEnvironment, type ExpressionClock } from '../cel/kwok-functions.ts';
import { JqError } from '../jq/jq-lexer.ts';
import { JqQuery } from '../jq/jq.ts';
import { TemplateError } from '../templates/template-lexer.ts';
import { Template, type TemplateFunctions } from '../templates/template-run.ts';
import { METADATA, readDocuments, type Field } from './yaml-fields.ts';
import type {
  SelectorOperator,
  Stage,
  StageCondition,
  StageDelay,
  StageSource,
  StageStep,
} from './stage.ts';

export const STAGE_API_VERSION = 'kwok.x-k8s.io/v1alpha1';

/** A document that is no Stage: what it is and where. */
export interface OtherDocument {
  readonly apiVersion: string;
  readonly kind: string;
  readonly field: Field;
}

export interface StageFile {
  readonly stages: readonly Stage[];
  readonly others: readonly OtherDocument[];
}

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const;
const PATCH_TYPES = ['json', 'merge', 'strategic'] as const;
const APPLY_TYPES = ['apply', 'merge', 'strategic'] as const;
const STEP_KINDS = ['patch', 'event', 'finalizers', 'delete', 'apply'] as const;

/** What stages may use: functions of templates, and what expressions know. */
export interface StageLanguages {
  readonly functions: TemplateFunctions;
  readonly clock: ExpressionClock;
}

/** The stages of a file, compiled; throws a FileError. Stages without a selector never play. */
export function readStageFile(file: string, text: string, languages: StageLanguages): StageFile {
  const { functions } = languages;
  const environment = stageEnvironment(languages.clock);
  const stages: Stage[] = [];
  const others: OtherDocument[] = [];
  for (const document of readDocuments(file, text)) {
    const top = ['apiVersion', 'kind', 'metadata', 'spec', 'status', 'options', 'data'];
    const member = document.members(top);
    const apiVersion = member('apiVersion').text('');
    const kind = member('kind').text();
    if (kind !== 'Stage' || apiVersion !== STAGE_API_VERSION) {
      others.push({ apiVersion, kind, field: document });
      continue;
    }
    const stage = new StageReader(functions, environment).read(member('metadata'), member('spec'));
    if (stage !== null) stages.push(stage);
  }
  return { stages, others };
}

class StageReader {
  readonly #functions: TemplateFunctions;
  readonly #environment: Environment;
  /** The stage is for Pods or Nodes. */
  #isKubelets = false;

  constructor(functions: TemplateFunctions, environment: Environment) {
    this.#functions = functions;
    this.#environment = environment;
  }

  read(metadata: Field, spec: Field): Stage | null {
    const about = metadata.members(METADATA);
    const part = spec.members(
      ['resourceRef', 'selector', 'weight', 'weightFrom', 'delay', 'next', 'steps'].concat(
        'immediateNextStage',
      ),
    );
    const resource = part('resourceRef').members(['apiGroup', 'kind']);
    const apiVersion = resource('apiGroup').text('v1') || 'v1';
    const kind = resource('kind').text();
    this.#isKubelets = apiVersion === 'v1' && (kind === 'Pod' || kind === 'Node');
    const selector = part('selector');
    const choice = selector.members(['matchLabels', 'matchAnnotations', 'matchExpressions']);
    const steps = this.#steps(part('next'), part('steps'));
    const stage: Stage = {
      name: about('name').text(),
      apiVersion,
      kind,
      labels: choice('matchLabels').texts() ?? {},
      annotations: choice('matchAnnotations').texts() ?? {},
      conditions: choice('matchExpressions')
        .items()
        .map((item) => conditionOf(item, this.#environment)),
      weight: part('weight').number(0),
      weightFrom: sourceOf(part('weightFrom'), this.#environment),
      delay: delayOf(part('delay'), this.#environment),
      steps,
      isImmediate: part('immediateNextStage').flag(),
    };
    return selector.isAbsent ? null : stage;
  }

  #steps(next: Field, steps: Field): StageStep[] {
    const older = this.#next(next);
    return steps.isAbsent ? older : steps.items().map((step) => this.#step(step));
  }

  /** The older form, in the order in which kwok plays it. */
  #next(next: Field): StageStep[] {
    const part = next.members(
      ['event', 'finalizers', 'delete', 'patches', 'statusTemplate', 'statusSubresource'].concat(
        'statusPatchAs',
      ),
    );
    const steps: StageStep[] = [];
    if (!part('event').isAbsent) steps.push(this.#event(part('event')));
    if (!part('finalizers').isAbsent) steps.push(finalizersOf(part('finalizers')));
    if (part('delete').flag()) steps.push({ kind: 'delete' });
    for (const patch of part('patches').items()) steps.push(this.#patch(patch));
    const status = part('statusTemplate');
    if (!status.isAbsent) {
      const user = this.#user(part('statusPatchAs'));
      const subresource = part('statusSubresource').text('status');
      const template = this.#template(status);
      steps.push({ kind: 'patch', type: '', subresource, root: 'status', template, user });
    }
    return steps;
  }

  #step(step: Field): StageStep {
    const part = step.members(STEP_KINDS);
    const given = STEP_KINDS.filter((kind) => !part(kind).isAbsent);
    const [kind] = given;
    if (kind === undefined || given.length > 1) {
      throw step.error(`exactly one of ${STEP_KINDS.join(', ')} is expected`);
    }
    const field = part(kind);
    switch (kind) {
      case 'patch':
        return this.#patch(field);
      case 'event':
        return this.#event(field);
      case 'finalizers':
        return finalizersOf(field);
      case 'apply':
        return this.#apply(field);
      case 'delete':
        if (!field.flag()) throw field.error('only true makes sense here');
        return { kind };
    }
  }

  #event(event: Field): StageStep {
    const part = event.members(['type', 'reason', 'message']);
    return {
      kind: 'event',
      type: part('type').text('Normal'),
      reason: part('reason').text(''),
      message: this.#template(part('message'), ''),
    };
  }

  #patch(patch: Field): StageStep {
    const part = patch.members(['subresource', 'root', 'template', 'type', 'impersonation']);
    return {
      kind: 'patch',
      type: part('type').isAbsent ? '' : part('type').oneOf(PATCH_TYPES),
      subresource: part('subresource').text(''),
      root: part('root').text(''),
      template: this.#template(part('template')),
      user: this.#user(part('impersonation')),
    };
  }

  #apply(apply: Field): StageStep {
    const part = apply.members(['template', 'subresource', 'type']);
    return {
      kind: 'apply',
      type: part('type').isAbsent ? 'apply' : part('type').oneOf(APPLY_TYPES),
      subresource: part('subresource').text(''),
      template: this.#template(part('template')),
    };
  }

  /** Whom a patch is sent as, '' for ourselves; kwok knows it for all kinds but these two. */
  #user(field: Field): string {
    if (field.isAbsent) return '';
    if (this.#isKubelets) throw field.error('impersonation is not supported for Pods and Nodes');
    return field.members(['username'])('username').text();
  }

  #template(field: Field, fallback?: string): Template {
    try {
      return new Template(field.text(fallback).trim(), this.#functions);
    } catch (error) {
      if (error instanceof TemplateError) throw field.error(error.message);
      throw error;
    }
  }
}

function conditionOf(item: Field, environment: Environment): StageCondition {
  const part = item.members(['cel', 'jq', 'key', 'operator', 'values']);
  if (!part('cel').isAbsent) {
    const expression = part('cel').members(['expression'])('expression');
    return { kind: 'cel', program: celOf(expression, environment) };
  }
  const jq = part('jq').isAbsent ? part : part('jq').members(['key', 'operator', 'values']);
  const operator: SelectorOperator = jq('operator').oneOf(OPERATORS);
  const values = jq('values')
    .items()
    .map((value) => value.text());
  const takesValues = operator === 'In' || operator === 'NotIn';
  if (takesValues && values.length === 0) {
    throw jq('values').error(`operator ${operator} needs values`);
  }
  if (!takesValues && values.length > 0) {
    throw jq('values').error(`operator ${operator} takes no values`);
  }
  return { kind: 'jq', query: queryOf(jq('key')), operator, values };
}

function queryOf(field: Field): JqQuery {
  try {
    return new JqQuery(field.text());
  } catch (error) {
    if (error instanceof JqError) throw field.error(`jq: ${error.message}`);
    throw error;
  }
}

function celOf(field: Field, environment: Environment): Program {
  const compiled = compileCel(environment, field.text());
  if (!compiled.ok) throw field.error(`CEL: ${compiled.message}`);
  const { type } = compiled.program;
  const isPossible = field.path.includes('matchExpressions') ? type === BOOL || type === DYN : true;
  if (!isPossible) throw field.error('CEL: the expression of a selector must give a bool');
  return compiled.program;
}

function sourceOf(field: Field, environment: Environment): StageSource | null {
  if (field.isAbsent) return null;
  const part = field.members(['cel', 'jq', 'expressionFrom']);
  if (!part('cel').isAbsent) {
    const expression = part('cel').members(['expression'])('expression');
    return { kind: 'cel', program: celOf(expression, environment) };
  }
  const jq = part('jq').isAbsent
    ? part('expressionFrom')
    : part('jq').members(['expression'])('expression');
  return { kind: 'jq', query: queryOf(jq) };
}

function delayOf(field: Field, environment: Environment): StageDelay | null {
  if (field.isAbsent) return null;
  const part = field.members(
    ['durationMilliseconds', 'durationFrom', 'jitterDurationMilliseconds'].concat(
      'jitterDurationFrom',
    ),
  );
  const jitter = part('jitterDurationMilliseconds');
  return {
    durationMs: part('durationMilliseconds').number(0),
    durationFrom: sourceOf(part('durationFrom'), environment),
    jitterMs: jitter.isAbsent ? null : jitter.number(0),
    jitterFrom: sourceOf(part('jitterDurationFrom'), environment),
  };
}

function finalizersOf(field: Field): StageStep {
  const part = field.members(['add', 'remove', 'empty']);
  const values = (list: Field): string[] =>
    list.items().map((item) => item.members(['value'])('value').text());
  return {
    kind: 'finalizers',
    add: values(part('add')),
    remove: values(part('remove')),
    isEmpty: part('empty').flag(),
  };
}
