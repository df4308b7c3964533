/**
 * What Go's REST client says of an answer that is no success: webhooks are called through it, and
 * its words stand in the refusals.
 */
import { stringAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';

/** The client reads no more of an answer that it does not understand. */
const TEXT_BYTES_MAX = 2048;

const MESSAGES: Readonly<Record<number, string>> = {
  400: 'the server rejected our request for an unknown reason',
  401: 'the server has asked for the client to provide credentials',
  404: 'the server could not find the requested resource',
  405: 'the server does not allow this method on the requested resource',
  409: 'the server reported a conflict',
  422: 'the server rejected our request due to an error in our request',
  429: 'the server has received too many requests and has asked us to try again later',
  503: 'the server is currently unable to handle the request',
  504:
    'the server was unable to return a response in the time allotted, ' +
    'but may still be processing the request',
};

/** The message of a Status that says of a failure; null for all else. */
function statusMessage(text: string): string | null {
  if (!text.startsWith('{')) return null;
  try {
    const said = parseJson(text) as JsonObject;
    const isFailure = stringAt(said, 'kind') === 'Status' && stringAt(said, 'status') === 'Failure';
    return isFailure ? stringAt(said, 'message') : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** `contentType` is '' where the answer did not tell: then it is text. */
export function httpFailure(code: number, body: Buffer, contentType: string): string {
  const own = statusMessage(body.toString('utf8').trim());
  if (own !== null) return own;
  const isText = contentType === '' || contentType.trim().toLowerCase().startsWith('text/');
  const said = isText ? body.toString('utf8', 0, TEXT_BYTES_MAX).trim() : 'unknown';
  const known = MESSAGES[code];
  if (known !== undefined) return known;
  if (code === 403 || code === 415) return said;
  if (code === 406) {
    const isUnknown = said === '' || said === 'unknown';
    if (!isUnknown) return said;
    return 'the server was unable to respond with a content type that the client supports';
  }
  if (code >= 500) {
    const quoted = JSON.stringify(said);
    return `an error on the server (${quoted}) has prevented the request from succeeding`;
  }
  return `the server responded with the status code ${code} but did not return more information`;
}
