/**
 * A PUT or an apply was authorized as what it is. Where nothing has the name, it creates, and that
 * is another right: upstream's `withAuthorization`, asked after the rules and before validating
 * admission.
 */
import { internalError, type Status } from '@megaplane/machinery/status';
import type { Admission } from '../admission/admission.ts';
import { attributesOf, denial, whenDecided } from './authorization.ts';
import type { Call } from '../request/call.ts';
import type { World } from '../lister/world.ts';

interface Creation {
  readonly world: World;
  readonly call: Call;
  readonly admission: Admission;
}

/** Calls `then` with null where the caller may create what the request names, else with why not. */
export function whenMayCreate(
  { world, call, admission }: Creation,
  then: (refusal: Status | null) => void,
): void {
  const { info, identity } = call;
  if (info.verb === 'create') {
    then(null);
    return;
  }
  const { services } = world;
  if (services === null) {
    then(internalError('no authorizer provided, unable to authorize a create on update'));
    return;
  }
  const attributes = attributesOf(info, 'create', info.name);
  let isLater = false;
  let isDecided = false;
  whenDecided(services.decide, identity, attributes, ({ allowed, reason, error }) => {
    isDecided = true;
    const refusal = allowed
      ? null
      : error === undefined
        ? denial(identity, attributes, reason)
        : internalError(error);
    if (isLater) admission.resume(call, () => then(refusal));
    else then(refusal);
  });
  isLater = true;
  if (!isDecided) call.keepBody();
}
