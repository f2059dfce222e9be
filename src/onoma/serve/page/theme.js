// Before anything is drawn: the theme that was chosen earlier. Without a choice, that of the system.
try {
  const chosen = localStorage.getItem("onoma-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // storage may be forbidden; then the theme of the system holds
}
