/** Reads Stage files: every construct is compiled, and what cannot be is refused by its place. */
import { BOOL, DYN } from '@megaplane/machinery/cel/typing';
import { compileCel, type Program } from '@megaplane/machinery/cel/program';
import { stageEnvironment, type ExpressionClock } from '../cel/kwok-functions.ts';
import { JqError } from '../jq/jq-lexer.ts';
import { JqQuery } from '../jq/jq.ts';
import { TemplateError } from '../gotemplate/template-lexer.ts';
import { Template, type TemplateFunctions } from '../gotemplate/template-run.ts';
import { METADATA, readDocuments, type Field } from '../yaml/yaml-fields.ts';
import type {
  SelectorOperator,
  Stage,
  StageCondition,
  StageDelay,
  StageSource,
  StageStep,
} from './stage.ts';
import type { Environment } from '@megaplane/machinery/environment';

export const STAGE_API_VERSION = 'kwok.x-k8s.io/v1alpha1';

/** A document that is no Stage: what it is and where. */
export interface OtherDocument {
  readonly apiVersion: string;
  readonly kind: string;
  readonly field: Field;
}

export interface StageFile {
  readonly stages: readonly Stage[];
  /** Where the names of these stages stand. */
  readonly places: readonly Field[];
  readonly others: readonly OtherDocument[];
  /** What is understood and does nothing. */
  readonly warnings: readonly string[];
}

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const;
const PATCH_TYPES = ['json', 'merge', 'strategic'] as const;
const APPLY_TYPES = ['apply', 'merge', 'strategic'] as const;
/** In the order in which one step does them. */
const STEP_KINDS = ['event', 'finalizers', 'delete', 'patch', 'apply'] as const;
const EVENT_TYPES = ['Normal', 'Warning'] as const;

/** Fields that documents of kwok's kinds have. */
export const TOP_FIELDS: readonly string[] = [
  'apiVersion',
  'kind',
  'metadata',
  'spec',
  'status',
  'options',
  'data',
];

/** What stages may use: functions of templates, and what expressions know. */
export interface StageLanguages {
  readonly functions: TemplateFunctions;
  readonly clock: ExpressionClock;
}

/** What expressions are read with. */
interface ExpressionTools {
  readonly environment: Environment;
  readonly clock: ExpressionClock;
}

/** The stages of a file, compiled; throws a FileError. Those without a selector never play. */
export function readStageFile(file: string, text: string, languages: StageLanguages): StageFile {
  const { functions } = languages;
  const { clock } = languages;
  const tools = { environment: stageEnvironment(clock), clock };
  const stages: Stage[] = [];
  const places: Field[] = [];
  const others: OtherDocument[] = [];
  const warnings: string[] = [];
  for (const document of readDocuments(file, text)) {
    // what it is comes first: documents of others have other fields
    if (document.inside('kind').isAbsent) document.members(TOP_FIELDS);
    const apiVersion = document.inside('apiVersion').text('');
    const kind = document.inside('kind').text();
    if (kind !== 'Stage' || apiVersion !== STAGE_API_VERSION) {
      others.push({ apiVersion, kind, field: document });
      continue;
    }
    const member = document.members(TOP_FIELDS);
    const reader = new StageReader(functions, tools, warnings);
    const stage = reader.read(member('metadata'), member('spec'));
    stages.push(stage);
    places.push(member('metadata').inside('name'));
  }
  return { stages, places, others, warnings };
}

class StageReader {
  readonly #functions: TemplateFunctions;
  readonly #tools: ExpressionTools;
  readonly #warnings: string[];

  constructor(functions: TemplateFunctions, tools: ExpressionTools, warnings: string[]) {
    this.#functions = functions;
    this.#tools = tools;
    this.#warnings = warnings;
  }

  read(metadata: Field, spec: Field): Stage {
    const about = metadata.members(METADATA);
    const part = spec.members(
      ['resourceRef', 'selector', 'weight', 'weightFrom', 'delay', 'next', 'steps'].concat(
        'immediateNextStage',
      ),
    );
    const resource = part('resourceRef').members(['apiGroup', 'kind']);
    const apiVersion = resource('apiGroup').text('v1') || 'v1';
    const kind = resource('kind').text();
    if (kind === '') throw resource('kind').error('is required');
    const selector = part('selector');
    const choice = selector.members(['matchLabels', 'matchAnnotations', 'matchExpressions']);
    const steps = this.#steps(part('next'), part('steps'));
    if (selector.isAbsent)
      this.#warnings.push(selector.error('without it no object has the stage').message);
    return {
      name: about('name').text(),
      place: resource('kind').place,
      apiVersion,
      kind,
      labels: choice('matchLabels').texts() ?? {},
      annotations: choice('matchAnnotations').texts() ?? {},
      conditions: choice('matchExpressions')
        .items()
        .map((item) => conditionOf(item, this.#tools)),
      weight: part('weight').count(0),
      weightFrom: sourceOf(part('weightFrom'), this.#tools),
      delay: delayOf(part('delay'), this.#tools),
      steps,
      isImmediate: part('immediateNextStage').flag(),
      isIdle: selector.isAbsent,
    };
  }

  #steps(next: Field, steps: Field): StageStep[] {
    const older = this.#next(next);
    const newer = steps.items().flatMap((step) => this.#step(step));
    const all = steps.items().length === 0 ? older : newer;
    // what is deleted can only be told of
    const end = all.findIndex(({ kind }) => kind === 'delete');
    return all.filter(({ kind }, index) => end < 0 || index <= end || kind === 'event');
  }

  /** The older form, in the order of kwok v0.8: a status template counts without patches only. */
  #next(next: Field): StageStep[] {
    const part = next.members(
      ['event', 'finalizers', 'delete', 'patches', 'statusTemplate', 'statusSubresource'].concat(
        'statusPatchAs',
      ),
    );
    const steps: StageStep[] = [];
    if (!part('event').isAbsent) steps.push(...this.#event(part('event')));
    if (!part('finalizers').isAbsent) steps.push(finalizersOf(part('finalizers')));
    const patches = part('patches')
      .items()
      .map((patch) => this.#patch(patch));
    steps.push(...patches);
    const status = part('statusTemplate');
    if (!status.isAbsent && patches.length > 0) {
      this.#warnings.push(
        status.error('is left aside where there are patches, as in kwok').message,
      );
    } else if (status.text('') !== '') {
      const user = userOf(part('statusPatchAs'));
      const subresource = part('statusSubresource').text('status');
      const template = this.#template(status);
      steps.push({ kind: 'patch', type: '', subresource, root: 'status', template, user });
    }
    if (part('delete').flag()) steps.push({ kind: 'delete' });
    return steps;
  }

  /** What one step does, in kwok's order. */
  #step(step: Field): StageStep[] {
    const part = step.members(STEP_KINDS);
    const given = STEP_KINDS.filter((kind) => !part(kind).isAbsent);
    if (given.length === 0) throw step.error(`one of ${STEP_KINDS.join(', ')} is expected`);
    return given.flatMap((kind) => this.#partOfStep(kind, part(kind)));
  }

  #partOfStep(kind: (typeof STEP_KINDS)[number], field: Field): StageStep[] {
    switch (kind) {
      case 'patch':
        return [this.#patch(field)];
      case 'event':
        return this.#event(field);
      case 'finalizers':
        return [finalizersOf(field)];
      case 'apply':
        return [this.#apply(field)];
      case 'delete':
        return field.flag() ? [{ kind }] : [];
    }
  }

  /** None without a type: kwok's recorder drops such events. */
  #event(event: Field): StageStep[] {
    const part = event.members(['type', 'reason', 'message']);
    const reason = part('reason').text('');
    const message = part('message').text('');
    if (part('type').text('') !== '') {
      return [{ kind: 'event', type: part('type').oneOf(EVENT_TYPES), reason, message }];
    }
    this.#warnings.push(event.error('no event is told without type: Normal or Warning').message);
    return [];
  }

  #patch(patch: Field): StageStep {
    const part = patch.members(['subresource', 'root', 'template', 'type', 'impersonation']);
    return {
      kind: 'patch',
      type: part('type').isAbsent ? '' : part('type').oneOf(PATCH_TYPES),
      subresource: part('subresource').text(''),
      root: part('root').text(''),
      template: this.#template(part('template')),
      user: userOf(part('impersonation')),
    };
  }

  #apply(apply: Field): StageStep {
    const part = apply.members(['template', 'subresource', 'type', 'impersonation']);
    return {
      kind: 'apply',
      type: part('type').isAbsent ? 'apply' : part('type').oneOf(APPLY_TYPES),
      subresource: part('subresource').text(''),
      template: this.#template(part('template')),
      user: userOf(part('impersonation')),
    };
  }

  #template(field: Field): Template {
    try {
      return new Template(field.text().trim(), this.#functions);
    } catch (error) {
      if (error instanceof TemplateError) throw field.error(error.message);
      throw error;
    }
  }
}

/** Whom a request is sent as, '' for ourselves. */
function userOf(field: Field): string {
  return field.isAbsent ? '' : field.members(['username'])('username').text();
}

function conditionOf(item: Field, tools: ExpressionTools): StageCondition {
  const part = item.members(['cel', 'jq', 'key', 'operator', 'values']);
  if (!part('cel').isAbsent && part('jq').isAbsent && part('key').isAbsent) {
    const expression = part('cel').members(['expression'])('expression');
    return { kind: 'cel', program: celOf(expression, tools) };
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
  return { kind: 'jq', query: queryOf(jq('key'), tools), operator, values };
}

function queryOf(field: Field, { clock }: ExpressionTools): JqQuery {
  try {
    return new JqQuery(field.text(), () => clock.nowMs());
  } catch (error) {
    if (error instanceof JqError) throw field.error(`jq: ${error.message}`);
    throw error;
  }
}

function celOf(field: Field, tools: ExpressionTools): Program {
  const compiled = compileCel(tools.environment, field.text());
  if (!compiled.ok) throw field.error(`CEL: ${compiled.message}`);
  const { type } = compiled.program;
  const isPossible = field.path.includes('matchExpressions') ? type === BOOL || type === DYN : true;
  if (!isPossible) throw field.error('CEL: the expression of a selector must give a bool');
  return compiled.program;
}

function sourceOf(field: Field, tools: ExpressionTools): StageSource | null {
  if (field.isAbsent) return null;
  const part = field.members(['cel', 'jq', 'expressionFrom']);
  if (!part('cel').isAbsent) {
    const expression = part('cel').members(['expression'])('expression');
    return { kind: 'cel', program: celOf(expression, tools) };
  }
  const jq = part('jq').isAbsent
    ? part('expressionFrom')
    : part('jq').members(['expression'])('expression');
  return { kind: 'jq', query: queryOf(jq, tools) };
}

function delayOf(field: Field, tools: ExpressionTools): StageDelay | null {
  if (field.isAbsent) return null;
  const part = field.members(
    ['durationMilliseconds', 'durationFrom', 'jitterDurationMilliseconds'].concat(
      'jitterDurationFrom',
    ),
  );
  const jitter = part('jitterDurationMilliseconds');
  return {
    durationMs: part('durationMilliseconds').count(0),
    durationFrom: sourceOf(part('durationFrom'), tools),
    jitterMs: jitter.isAbsent ? null : jitter.count(0),
    jitterFrom: sourceOf(part('jitterDurationFrom'), tools),
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
