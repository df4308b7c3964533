// shell: the entry of the page
import { render } from 'preact';
import { Live } from './live/live.ts';
import { takeToken, useToken } from './live/requests.ts';
import { frame } from './views/frame.ts';

const root = document.getElementById('page');
if (root === null) throw new Error('the page has no place for its views');
useToken(takeToken());
let turn = 0;
const live = new Live(() => render(frame(live, ++turn), root));
root.replaceChildren();
render(frame(live, turn), root);
live.start();
