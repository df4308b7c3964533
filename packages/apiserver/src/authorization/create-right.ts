/**
 * A PUT or an apply was authorized as what it is. Where nothing has the name, it creates, and that
 * is another right: upstream's `withAuthorization`, asked after the rules and before validating
 * admission.
 */
import { internalError, type Status } from '@megaplane/machinery/status';
import { attributesOf, denial, whenDecided, type Authorizer } from './authorization.ts';
import type { Call } from '../request/call.ts';

/** Goes on with a request in a later turn. */
interface Resuming {
  resume(call: Call, work: () => void): void;
}

interface Creation {
  readonly services: { readonly decide: Authorizer };
  readonly call: Call;
  readonly admission: Resuming;
}

/** Calls `then` with null where the caller may create what the request names, else with why not. */
export function whenMayCreate(
  { services, call, admission }: Creation,
  then: (refusal: Status | null) => void,
): void {
  const { info, identity } = call;
  if (info.verb === 'create') {
    then(null);
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
