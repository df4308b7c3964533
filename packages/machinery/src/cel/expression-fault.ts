/** What validation says of an expression that does not compile. */
import { internalFieldError, invalidValue, type FieldError } from '../meta/fielderrors.ts';
import { failureText, type Uncompiled } from './program.ts';

/** Where a constant part of it fails, upstream takes that for its own error. */
export function expressionFault(path: string, source: string, failed: Uncompiled): FieldError {
  const text = failureText(failed);
  return failed.kind === 'program'
    ? internalFieldError(path, text)
    : invalidValue(path, source, text);
}
