/** What PodSecurity found, under upstream's names. */
import { LabelledCounter } from '../../metrics/labelled-metrics.ts';
import { isFuture, type Mode, type Policy } from './pod-security-policy.ts';

/** What a write is to PodSecurity; null for one that is not to be counted. */
export interface Judged {
  readonly operation: string;
  /** Plural and group as one. */
  readonly kind: string;
  readonly subresource: string;
}

export class PodSecurityCounts {
  readonly #evaluations = new LabelledCounter('pod_security_evaluations_total');
  readonly #exemptions = new LabelledCounter('pod_security_exemptions_total');
  readonly #errors = new LabelledCounter('pod_security_errors_total');

  evaluated(decision: 'allow' | 'deny', mode: Mode, policy: Policy, write: Judged | null): void {
    if (write === null) return;
    const { level } = policy;
    const version = isFuture(policy) ? 'future' : policy.version;
    this.#evaluations.add(
      `decision="${decision}",mode="${mode}",policy_level="${level}",` +
        `policy_version="${level === 'privileged' ? 'latest' : version}",${labelsOf(write)}`,
    );
  }

  exempted(write: Judged | null): void {
    if (write !== null) this.#exemptions.add(labelsOf(write));
  }

  /** Labels of a namespace say what nobody understands; the strictest that can be meant counts. */
  unclear(write: Judged | null): void {
    if (write !== null) this.#errors.add(`fatal="false",${labelsOf(write)}`);
  }

  print(lines: string[]): void {
    this.#evaluations.print(lines);
    this.#exemptions.print(lines);
    this.#errors.print(lines);
  }
}

function labelsOf({ operation, kind, subresource }: Judged): string {
  const sort = kind === 'pods' ? 'pod' : 'controller';
  const verb = operation === 'CREATE' ? 'create' : 'update';
  return `request_operation="${verb}",resource="${sort}",subresource="${subresource}"`;
}
