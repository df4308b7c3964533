/** The table of bounds in docs/security.md says what the constants say. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { WAITING_BYTES_MAX } from '../packages/apiserver/src/flowcontrol/fairness.ts';
import { BODY_BYTES_MAX } from '../packages/apiserver/src/serializer/body.ts';
import { JSON_DEPTH_MAX } from '../packages/base/src/bytes/nested-json.ts';
import { PATTERN_STEPS_MAX } from '../packages/machinery/src/cel/library/regex-library.ts';
import {
  JSON_PATCH_COPIED_BYTES_MAX,
  JSON_PATCH_OPERATIONS_MAX,
  JSON_PATCH_SHIFTS_MAX,
} from '../packages/machinery/src/patch/patch-json.ts';
import {
  SELECTOR_CHARS_MAX,
  SELECTOR_TERMS_MAX,
} from '../packages/machinery/src/selectors/selectors.ts';
import { PROTOBUF_DEPTH_MAX } from '../packages/machinery/src/serializer/protobuf-decode.ts';
import { PATH_CHARS_MAX, PATH_VALUES_MAX } from '../packages/machinery/src/structural/json-path.ts';
import {
  ALTERNATIVES_MAX,
  FAULT_CHARS_MAX,
} from '../packages/machinery/src/structural/openapi-faults.ts';
import { CONNECTIONS_MAX as PAGE_CONNECTIONS_MAX } from '../packages/cli/src/page/page-server.ts';
import { COMPONENT_CONNECTIONS_MAX } from '../packages/client/src/componentbase/http-endpoint.ts';
import { KUBELET_CONNECTIONS_MAX } from '../packages/nodes/src/server/kubelet-port.ts';
import {
  BLOCKS_PER_TURN_MAX,
  CONTROL_BYTES_MAX,
} from '../packages/nodes/src/server/spdy-frames.ts';
import { STREAMS_MAX, UNREAD_BYTES_MAX } from '../packages/nodes/src/server/spdy-session.ts';
import { PIPELINED_MAX } from '../packages/wire/src/http1/http1-server.ts';

const PAGE = join(import.meta.dirname, '../docs/security.md');

const plain = (value: number): string => value.toLocaleString('en-US');
const binary = (value: number): string =>
  value >= 2 ** 20 ? `${value / 2 ** 20} Mi` : `${value / 2 ** 10} Ki`;

/** The row of each bound by its first words, and the figures that stand in it. */
const ROWS: readonly (readonly [row: string, figures: readonly string[]])[] = [
  ['nesting of JSON', [plain(JSON_DEPTH_MAX), `${PROTOBUF_DEPTH_MAX} levels`]],
  ['regular expressions', [`${binary(PATTERN_STEPS_MAX)} letters`]],
  ['selectors', [`${binary(SELECTOR_CHARS_MAX)} characters`, `${plain(SELECTOR_TERMS_MAX)} terms`]],
  [
    'JSON patches',
    [
      `${plain(JSON_PATCH_OPERATIONS_MAX)} operations`,
      `${binary(JSON_PATCH_COPIED_BYTES_MAX)}B that are copied`,
      `${binary(JSON_PATCH_SHIFTS_MAX)} items`,
    ],
  ],
  [
    'paths of printed',
    [`${binary(PATH_CHARS_MAX)} characters`, `${plain(PATH_VALUES_MAX)} values`],
  ],
  [
    "what is told of an object's",
    [`${binary(FAULT_CHARS_MAX)} characters`, `${plain(ALTERNATIVES_MAX)} alternatives`],
  ],
  ['a body', [`${binary(BODY_BYTES_MAX)}B of an object`]],
  ['requests that wait', [`${binary(WAITING_BYTES_MAX)}B`]],
  [
    'connections of a listener',
    [
      `${plain(KUBELET_CONNECTIONS_MAX)} of the kubelets`,
      `${plain(COMPONENT_CONNECTIONS_MAX)} of a component`,
      `${PAGE_CONNECTIONS_MAX} of the page`,
    ],
  ],
  ['what a client of exec', [`${binary(UNREAD_BYTES_MAX)}B of answers`]],
  [
    'headers in SPDY',
    [
      `${plain(STREAMS_MAX)} open streams`,
      `${binary(CONTROL_BYTES_MAX)}B a frame`,
      `${BLOCKS_PER_TURN_MAX} frames a turn`,
    ],
  ],
  ['pipelined requests', [` ${PIPELINED_MAX} `]],
];

test('the table of bounds says what the constants say', () => {
  const lines = readFileSync(PAGE, 'utf8').split('\n');
  for (const [row, figures] of ROWS) {
    const line = lines.find((one) => one.startsWith(`| ${row}`));
    assert(line !== undefined, `no row begins with ${row}`);
    for (const figure of figures) assert(line.includes(figure), `${figure} in: ${line}`);
  }
});
