/** `/debug/flags/v`: how much is logged, changed while the server runs. */
import type { Call } from '../request/call.ts';
import type { ProcessFacts } from './process-facts.ts';

const LEVEL_MAX: number = 2 ** 31 - 1;

const INDEX = `<html>
<head>
<title>/debug/flags/</title>
</head>
<body>
/debug/flags/<br>
<br>
flags:<br>
<table>
<tr>v<br>
</table>
<br>
full flags configurable<br>
</body>
</html>
`;

/** Answers everything under `/debug/flags`. */
export function answerFlags({ setVerbosity }: ProcessFacts, call: Call): void {
  if (call.info.path !== '/debug/flags/v') {
    call.send(200, 'text/html; charset=utf-8', INDEX);
    return;
  }
  if (call.exchange.method !== 'PUT') {
    sendLine(call, 406, 'unsupported http method');
    return;
  }
  const text = call.body.toString('utf8');
  const level = /^\d+$/.test(text) ? Number(text) : -1;
  if (level < 0 || level > LEVEL_MAX) {
    const why = level < 0 ? 'invalid syntax' : 'value out of range';
    sendLine(call, 400, `strconv.ParseUint: parsing ${JSON.stringify(text)}: ${why}`);
    return;
  }
  setVerbosity?.(level);
  sendLine(call, 200, `successfully set klog.logging.verbosity to ${text}`);
}

function sendLine(call: Call, code: number, text: string): void {
  const headers = call.headers('x-content-type-options', 'nosniff');
  call.code = code;
  call.exchange.respond(code, 'text/plain', `${text}\n`, headers);
}
