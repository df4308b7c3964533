/** Where a webhook is reached: by a URL or by a service. */
import { invalidValue, required } from '../../meta/fielderrors.ts';
import { parseGoUrl } from '../../gotext/go-url.ts';
import { objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { dnsSubdomainErrors, portNumberErrors } from '../../meta/names.ts';
import type { Findings } from './validation-rules.ts';

/** A URL or a service, and what is wrong with it. */
export function checkWebhookReach(found: Findings, path: string, client: JsonObject): void {
  const { url } = client;
  const service = objectAt(client, 'service');
  if ((url === undefined) === (service === undefined)) {
    found.push(required(path, 'exactly one of url or service is required'));
  } else if (typeof url === 'string') checkUrl(found, `${path}.url`, url);
  else if (service !== undefined) checkService(found, `${path}.service`, service);
}

/** Upstream looks for the name where the namespace is, and the other way round. */
function checkService(found: Findings, path: string, service: JsonObject): void {
  if (stringAt(service, 'namespace') === '') found.push(required(`${path}.name`));
  if (stringAt(service, 'name') === '') found.push(required(`${path}.namespace`));
  const port = service['port'];
  const number = typeof port === 'number' ? port : 0;
  const errors = portNumberErrors(number);
  if (errors.length > 0) {
    found.push(invalidValue(`${path}.port`, number, `port is not valid: ${errors.join(', ')}`));
  }
  const steps = stringAt(service, 'path');
  if (steps !== '' && steps !== '/') checkSteps(found, steps, `${path}.path`);
}

function checkSteps(found: Findings, path: string, at: string): void {
  const refuse = (text: string): void => void found.push(invalidValue(at, path, text));
  if (path === '//') {
    refuse('segment[0] may not be empty');
    return;
  }
  if (!path.startsWith('/')) refuse("must start with a '/'");
  for (const [i, step] of path.slice(1).replace(/\/$/, '').split('/').entries()) {
    if (step === '') refuse(`segment[${i}] may not be empty`);
    else for (const text of dnsSubdomainErrors(step)) refuse(`segment[${i}]: ${text}`);
  }
}

/** A webhook's URL: https, a host, and nothing but a path behind it. */
function checkUrl(found: Findings, path: string, text: string): void {
  const format = 'desired format: https://host[/path]';
  const url = parseGoUrl(text);
  if (typeof url === 'string') {
    found.push(required(path, `url must be a valid URL: ${url}; ${format}`));
    return;
  }
  const { scheme, host, user, fragment, query } = url;
  const refuse = (value: string, detail: string): void => {
    found.push(invalidValue(path, value, detail));
  };
  if (scheme !== 'https') refuse(scheme, `'https' is the only allowed URL scheme; ${format}`);
  if (host === '') refuse('', `host must be specified; ${format}`);
  if (user !== undefined) refuse(user, 'user information is not permitted in the URL');
  if (fragment !== '') refuse(fragment, 'fragments are not permitted in the URL');
  if (query !== '') refuse(query, 'query parameters are not permitted in the URL');
}
