/** Plug-ins that ask what a user may do beyond the request itself. */
import type { Status } from '@megaplane/machinery/status';
import type { Attributes, Decision } from '../authorization/authorization.ts';
import type { Admitted } from '../registry/rest/admitted.ts';
import type { Verdict } from './admission-plugin.ts';

/** Times that a judgement is made anew, each for one more answer; then it counts as it is. */
const ATTEMPTS_MAX = 8;

export type Decide = (attributes: Attributes) => Decision;

/**
 * The verdict of `judge`, which asks what the user of a write may do. Where an authorizer has to
 * ask a webhook first, the write waits and is judged anew with the answer: what a second try of
 * the client would be allowed is allowed at once.
 */
export function withDecisions(
  { services, call }: Pick<Admitted, 'services' | 'call'>,
  judge: (decide: Decide) => Status | null,
): Verdict {
  let pending: Decision['pending'];
  const decide = (attributes: Attributes): Decision => {
    const decision = services.decide(call.identity, attributes);
    pending ??= decision.pending;
    return decision;
  };
  const attempt = (): Status | null => {
    pending = undefined;
    return judge(decide);
  };
  const verdict = attempt();
  if (pending === undefined) return verdict;
  return (then) => {
    let attempts = ATTEMPTS_MAX;
    const again = (): void => {
      const next = attempt();
      if (pending === undefined || attempts-- === 0) then(next);
      else pending(again);
    };
    pending?.(again);
  };
}
