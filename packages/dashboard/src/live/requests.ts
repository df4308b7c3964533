// shell: the browser's storage and its requests
/** Requests to the page's server, with the token that the link carried. */

const KEPT_UNDER = 'megaplane-token';

/** What is said where the token is not taken any more. */
export const TOKEN_GONE =
  'This page needs the link that megaplane printed; its token is not known here (any more).';

/**
 * Takes the token out of the address, where others see it, and keeps it for this origin: its other
 * tabs find it, and no other port does.
 */
export function takeToken(): string {
  const url = new URL(location.href);
  const given = url.searchParams.get('token');
  if (given === null) return localStorage.getItem(KEPT_UNDER) ?? '';
  url.searchParams.delete('token');
  history.replaceState(null, '', url);
  localStorage.setItem(KEPT_UNDER, given);
  return given;
}

let token = '';

/** All requests from here on carry this token. */
export function useToken(one: string): void {
  token = one;
}

/** Asks the server. Rejects where it cannot be reached, or with its text where it refuses. */
export async function ask(
  path: string,
  method: 'GET' | 'POST' | 'DELETE' = 'GET',
  body?: object,
  signal?: AbortSignal,
): Promise<Response> {
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  if (body !== undefined) headers['content-type'] = 'application/json';
  const response = await fetch(path, {
    method,
    headers,
    cache: 'no-store',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  if (response.ok) return response;
  throw new Error(response.status === 401 ? TOKEN_GONE : await reasonOf(response));
}

/** The same for answers in JSON. */
export async function askJson<Value>(
  path: string,
  method: 'GET' | 'POST' | 'DELETE' = 'GET',
  body?: object,
): Promise<Value> {
  return (await (await ask(path, method, body)).json()) as Value;
}

async function reasonOf(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as { readonly error?: string };
    return error ?? text;
  } catch {
    return text.trim() === '' ? `HTTP ${response.status}` : text.trim();
  }
}
